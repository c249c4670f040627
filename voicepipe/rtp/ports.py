"""Which UDP ports to try for a call, out of a range."""

import errno
import random
from collections.abc import Iterable
from itertools import chain

ANY_TRIES = 64
"""The system chooses a port whose neighbour is free at so many tries, or all are said to be taken."""


def candidates(ports: tuple[int, int], *, pairs: bool = False) -> Iterable[int]:
    """All ports between the first and the last of `ports`, from any one on and round, 0 for one that the system chooses
    where those are (0, 0). `pairs`: even ones, whose next belongs to the range as well."""
    first, last = ports
    if not first:
        return [0] * (ANY_TRIES if pairs else 1)
    among = range(first + first % 2, last, 2) if pairs else range(first, last + 1)
    start = random.randrange(max(1, len(among)))
    return chain(among[start:], among[:start])


def taken(error: OSError) -> bool:
    """Whether it was the port that could not be had, so that another one may do: not the address, nor are all of the
    process's sockets in use."""
    reason = error.__cause__ if isinstance(error.__cause__, OSError) else error  # uvloop's error has no number itself.
    return reason.errno in (errno.EADDRINUSE, errno.EACCES)
