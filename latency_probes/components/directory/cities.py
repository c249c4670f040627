"""Where the benches' PoPs and callers are: degrees of latitude and longitude, to a tenth."""

from voicepipe.base.places import Place


def _places(table: str) -> dict[str, Place]:
    rows = (line.split() for line in table.strip().splitlines())
    return {name: Place(float(latitude), float(longitude)) for name, latitude, longitude in rows}


POPS = _places("""
fra 50.1 8.7
lhr 51.5 -0.1
iad 39.0 -77.5
sjc 37.3 -121.9
gru -23.5 -46.6
jnb -26.2 28.0
bom 19.1 72.9
nrt 35.7 139.7
syd -33.9 151.2
""")
"""Nine regions as cloud providers have them."""

CALLERS = _places("""
amsterdam 52.4 4.9
berlin 52.5 13.4
madrid 40.4 -3.7
stockholm 59.3 18.1
istanbul 41.0 29.0
manchester 53.5 -2.2
lagos 6.5 3.4
nairobi -1.3 36.8
cape-town -33.9 18.4
dubai 25.2 55.3
delhi 28.6 77.2
singapore 1.3 103.8
osaka 34.7 135.5
seoul 37.6 127.0
melbourne -37.8 145.0
new-york 40.7 -74.0
chicago 41.9 -87.6
los-angeles 34.1 -118.2
bogota 4.7 -74.1
buenos-aires -34.6 -58.4
""")
"""Twenty cities from which people call."""
