"""Types of configured values with the range that each may have; `voicepipe check` tells it to whoever leaves it."""

import ipaddress
from typing import Annotated

import msgspec
from msgspec import Meta

Ms = Annotated[int, Meta(ge=0, le=600_000)]
Port = Annotated[int, Meta(ge=0, le=65_535)]
Decibel = Annotated[float, Meta(ge=-96, le=0)]
Gain = Annotated[float, Meta(ge=0, le=96)]
Probability = Annotated[float, Meta(gt=0, lt=1)]
Wait = Annotated[int, Meta(ge=1, le=600_000)]
"""Milliseconds, of something that takes some."""
Speed = Annotated[float, Meta(ge=0.25, le=1.5)]
NAME = r"^[a-z0-9][a-z0-9_-]*$"
IN_WORDS = {NAME: "lower-case letters, digits, - and _"}
"""Patterns as they are told to people."""
Name = Annotated[str, Meta(pattern=NAME)]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every table of the configuration."""


def check_hosts(**addresses: str) -> None:
    """Raises ValueError: one of these keys holds no IPv4 address of one host, and is not empty."""
    for key, address in addresses.items():
        try:
            if not address or not ipaddress.IPv4Address(address).is_unspecified:
                continue
        except ValueError:
            pass
        raise ValueError(f"{key}: {address!r} is no IPv4 address of one host; give one such as 192.0.2.7")


def check_ports(first: int, last: int) -> None:
    """Raises ValueError: they are no range."""
    if bool(first) != bool(last) or first > last:
        raise ValueError("first_port and last_port go together, the lower one first; or leave both at 0")
