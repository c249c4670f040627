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
def decode(raw: bytes | str | msgspec.Raw, shape: type[T]) -> T: ...


@overload
def decode(raw: bytes | str | msgspec.Raw, shape: Any = Any) -> Any: ...


def decode(raw: bytes | str | msgspec.Raw, shape: Any = Any) -> Any:
    """`raw` as a `shape`. Raises msgspec.DecodeError, also where the text is not UTF-8, is nested too deeply, or has a
    number that no float can be."""
    try:
        return _decoder(shape).decode(raw)
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None
    except UnicodeError as error:
        raise msgspec.DecodeError(str(error)) from None


@cache
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape, float_hook=_finite)


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("Number out of range")
    return number
