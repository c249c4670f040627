"""JSON that others have written: clients, providers, servers on this host.

msgspec's own reading of a float may take 9 µs (near the largest or the smallest number), so 500 kB of them would stop
the event loop for 0.7 s. With Python's they take 40 ms at most. Only what is read as `Any` is mended: a client's shape
must have no list of typed floats.
"""

from functools import cache
from math import isfinite
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")


@overload
def decoder(shape: type[T]) -> msgspec.json.Decoder[T]: ...


@overload
def decoder(shape: Any) -> msgspec.json.Decoder[Any]: ...


def decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    """Decodes bytes or text. Its `decode` raises msgspec.DecodeError, also for a number that no float can be;
    RecursionError: it is nested too deeply; UnicodeError: it is no UTF-8."""
    return _made(shape)


@overload
def decode(raw: bytes | str | msgspec.Raw, shape: type[T]) -> T: ...


@overload
def decode(raw: bytes | str | msgspec.Raw, shape: Any = Any) -> Any: ...


def decode(raw: bytes | str | msgspec.Raw, shape: Any = Any) -> Any:
    """`raw` as a `shape`. Raises msgspec.DecodeError, RecursionError, UnicodeError: as `decoder` says."""
    return _made(shape).decode(raw)


@cache
def _made(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape, float_hook=_finite)


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("Number out of range")
    return number
