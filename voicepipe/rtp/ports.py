"""Which UDP ports to try for a call, out of a range."""

import errno
import random
from collections.abc import Iterable
from itertools import chain

ANY_TRIES = 64
"""Attempts to find a port whose neighbour is free among those that the system chooses; then all count as taken."""


def candidates(ports: tuple[int, int], *, pairs: bool = False) -> Iterable[int]:
    """All ports between the first and the last of `ports`, from a random one on and round; 0 for one that the system
    chooses where those are (0, 0). `pairs`: even ones, whose next belongs to the range as well."""
    first, last = ports
    if not first:
        return [0] * (ANY_TRIES if pairs else 1)
    among = range(first + first % 2, last, 2) if pairs else range(first, last + 1)
    start = random.randrange(max(1, len(among)))
    return chain(among[start:], among[:start])


def taken(error: OSError) -> bool:
    """Whether the error is the port's, so that another one may work: not the address's, nor that all of the process's
    sockets are in use."""
    reason = error.__cause__ if isinstance(error.__cause__, OSError) else error  # uvloop's error has no number itself.
    return reason.errno in (errno.EADDRINUSE, errno.EACCES)
