"""Types of configured values with their ranges; `voicepipe check` reports values outside of them."""

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

Ms = Annotated[int, Meta(ge=0, le=600_000)]
Port = Annotated[int, Meta(ge=0, le=65_535)]
Decibel = Annotated[float, Meta(ge=-96, le=0)]
Gain = Annotated[float, Meta(ge=0, le=96)]
Probability = Annotated[float, Meta(gt=0, lt=1)]
Wait = Annotated[int, Meta(ge=100, le=600_000)]
"""Milliseconds that people or other hosts take: a smaller value was meant as seconds."""
HookWait = Annotated[int, Meta(ge=100, le=10_000)]
"""Milliseconds that a caller waits before the call is answered."""
Speed = Annotated[float, Meta(ge=0.25, le=1.5)]
Spread = Annotated[float, Meta(ge=0.05, le=3)]
"""Standard deviation of a natural logarithm."""
NAME = r"^[a-z0-9][a-z0-9_-]*$"
LABEL = r"^[A-Za-z0-9._+-]{0,64}$"
VARIABLE = r"^([A-Za-z_][A-Za-z0-9_]*)?$"
DEVICE = r"^(auto|cpu|cuda(:\d+)?)$"
DIGITS = r"^[0-9]*$"
LANGUAGE = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$"
FUNCTION = r"^[A-Za-z0-9_-]{1,64}$"
IN_WORDS = {
    NAME: "lower-case letters, digits, - and _",
    LABEL: "up to 64 letters, digits, dots, + - and _",
    VARIABLE: "the name of an environment variable: letters, digits and _ (what it holds stands in no file)",
    DEVICE: '"auto", "cpu", "cuda" or one GPU, such as "cuda:1"',
    DIGITS: "digits",
    LANGUAGE: 'a language as BCP 47 has it, such as "en", "de" or "en-GB"',
    FUNCTION: "up to 64 letters, digits, - and _",
}
"""Patterns in words, for people."""
Name = Annotated[str, Meta(pattern=NAME)]
Label = Annotated[str, Meta(pattern=LABEL)]
"""May be empty."""
Variable = Annotated[str, Meta(pattern=VARIABLE)]
"""Names a variable of the environment; may be empty."""
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Temperature = Annotated[float, Meta(ge=0, le=2)]
"""Of a language model: 0 always takes the likeliest word."""
Price = Annotated[float, Meta(ge=0, le=1e9)]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every table of the configuration."""


def check_hosts(**addresses: str) -> None:
    """Raises ValueError: one of these keys has no IPv4 address of one host, and is not empty."""
    for key, address in addresses.items():
        try:
            if not address or not ipaddress.IPv4Address(address).is_unspecified:
                continue
        except ValueError:
            pass
        raise ValueError(f"{key}: {address!r} is no IPv4 address of one host; give one such as 192.0.2.7")


def is_url(text: str) -> bool:
    """Whether a text is an address of the web."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # "[" begins an IPv6 address, and a port is a number.
        return False


def check_url(key: str, url: str, example: str) -> None:
    """Raises ValueError: the value is neither empty nor an address of the web to which paths can be added."""
    if url and ("?" in url or not is_url(url)):
        raise ValueError(f"{key}: {url!r} is no address; give one such as {example}")


def check_host(key: str, host: str) -> None:
    """Raises ValueError: the value has more than a name or an address."""
    try:
        if "/" in host or ":" in host:
            ipaddress.IPv6Address(host)
    except ValueError:
        raise ValueError(
            f"{key}: {host!r} is no host name or address; give one alone, such as 127.0.0.1, and the port as port"
        ) from None


def check_ports(first: int, last: int) -> None:
    """Raises ValueError: the ports are no range."""
    if bool(first) != bool(last) or first > last:
        raise ValueError("first_port and last_port go together, the lower one first; or leave both at 0")
