"""How long a packet travels between two places on the globe, where nobody has measured it."""

from collections.abc import Sequence
from math import asin, cos, radians, sin, sqrt
from typing import Annotated

import msgspec
from msgspec import Meta

EARTH_KM = 6371.0
RTT_MS_PER_KM = 0.021
"""Round trip: 2.1 times as long as light takes in fibre (Bozkurt et al., "Why is the Internet so slow?!", PAM 2017)."""
ACCESS_MS = 15.0
"""Part of the round trip between a caller and their provider's network."""
LIGHT_MS_PER_KM = 0.0098
"""Round trip in fibre, straight: none is shorter."""
UNSURE_MS = 15.0
"""Milliseconds that are added to an estimate, so that a measured PoP wins over one that is as near."""


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place on the globe, in degrees; south and west are negative."""

    latitude: Annotated[float, Meta(ge=-90, le=90)]
    longitude: Annotated[float, Meta(ge=-180, le=180)]


def place_of(degrees: Sequence[float]) -> Place | None:
    """The place of `[latitude, longitude]`, as configurations have it; None where that is empty."""
    return Place(*degrees) if degrees else None


def check_place(degrees: Sequence[float]) -> None:
    """Raises ValueError: the numbers are no place, and not empty."""
    if degrees and not (len(degrees) == 2 and abs(degrees[0]) <= 90 and abs(degrees[1]) <= 180):
        raise ValueError(f"place: {list(degrees)} is none; give latitude and longitude, such as [50.1, 8.7]")


def distance_km(one: Place, other: Place) -> float:
    """Distance on the surface (haversine)."""
    north, east = radians(other.latitude - one.latitude), radians(other.longitude - one.longitude)
    across = cos(radians(one.latitude)) * cos(radians(other.latitude)) * sin(east / 2) ** 2
    return 2 * EARTH_KM * asin(min(1.0, sqrt(sin(north / 2) ** 2 + across)))


def estimated_rtt_ms(one: Place, other: Place) -> float:
    """Estimated round trip between a caller and a PoP, in ms: generous rather than right."""
    return apart_ms(one, other) + ACCESS_MS + UNSURE_MS


def apart_ms(one: Place, other: Place) -> float:
    """Estimated round trip between two PoPs, in ms, as long as most are."""
    return RTT_MS_PER_KM * distance_km(one, other)


def least_rtt_ms(one: Place, other: Place) -> float:
    """The shortest possible round trip in ms."""
    return LIGHT_MS_PER_KM * distance_km(one, other)
