"""The PoPs of `voicepipe demo --pops`: all are on this machine, and each says that it is in a city of its own."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from voicepipe.commands.runtime import free_port, url
from voicepipe.config import Config, HttpConfig
from voicepipe.config.fleet_config import FleetConfig


class PopCity(NamedTuple):
    """A PoP, and where it is said to be."""

    pop: str
    name: str
    region: str
    zone: str
    place: tuple[float, float]


CITIES = (
    PopCity("fra1", "Frankfurt", "eu-central", "eu", (50.1, 8.7)),
    PopCity("iad1", "Virginia", "us-east", "us", (39.0, -77.5)),
    PopCity("nrt1", "Tokyo", "ap-northeast", "jp", (35.7, 139.7)),
    PopCity("lhr1", "London", "eu-west", "uk", (51.5, -0.1)),
    PopCity("syd1", "Sydney", "ap-southeast", "au", (-33.9, 151.2)),
)
"""So many of the first as are asked for."""
SLOTS = 4
"""Few, so that a few calls fill a PoP and others begin to share."""


def configured(config: Config, city: PopCity, key: Path) -> Config:
    """`config` for the PoP of this city, on a free port of loopback. `key`: the directory's public one. Raises
    ConfigError."""
    http = HttpConfig(port=0)
    http = msgspec.structs.replace(http, port=free_port(http))
    pop = msgspec.structs.replace(config.pop, id=city.pop, region=city.region, slots=SLOTS)
    fleet = FleetConfig(keys=(str(key),), url=url(http), place=city.place, zone=city.zone)
    return msgspec.structs.replace(config, pop=pop, http=http, fleet=fleet)
