"""The network that an address belongs to: who has one address of it is about as far from everything as who has another.

It is all of an address that is kept, or told to others, to learn how far callers are.
"""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

IPV4_BITS, IPV6_BITS = 24, 48
OURSELVES = {"127.0.0.1", "::1"}
"""They mean this machine on each machine, and a proxy on it: how far a caller is they do not tell."""
KEPT = 10_000


@lru_cache(KEPT)
def network_of(address: str) -> str:
    """ "198.51.100.0/24" or "2001:db8:7::/48"; empty: it is no IP address, or one of `OURSELVES`."""
    if address in OURSELVES:
        return ""
    try:
        ip = ip_address(address)
    except ValueError:
        return ""
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped:
        ip = ip.ipv4_mapped
    if isinstance(ip, IPv6Address):
        return str(IPv6Network((int(ip), IPV6_BITS), strict=False))
    return str(IPv4Network((int(ip), IPV4_BITS), strict=False))


def may_be_of(address: str, network: str) -> bool:
    """Whether who sends from this address may be the caller of this network. Not if its own network is another one:
    then somebody asked in the caller's place, or a proxy stands between. By the other version of IP it cannot be told:
    who asks by IPv6 may well send by IPv4."""
    own = network_of(address)
    return bool(own and network) and (own == network or (":" in own) != (":" in network))
