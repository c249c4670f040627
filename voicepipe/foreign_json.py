"""JSON that others have written: clients, providers, servers on this host.

msgspec's own reading of a float may take 9 µs (a long mantissa near the largest or the smallest number), so 500 kB of
them would stop the event loop for 0.7 s. Python's takes a fortieth of that.
"""

from functools import cache
from math import isfinite
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


@cache
def decoder(shape: type[T]) -> msgspec.json.Decoder[T]:
    """Decodes bytes or text. Its `decode` raises msgspec.DecodeError, also for a number that no float can be."""
    return msgspec.json.Decoder(shape, float_hook=_finite)


def decode(raw: bytes | str, shape: Any = Any) -> Any:
    """`raw` as a `shape`. Raises msgspec.DecodeError."""
    return decoder(shape).decode(raw)


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("Number out of range")
    return number
