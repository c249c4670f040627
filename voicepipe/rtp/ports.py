"""Which UDP ports to try for a call, out of a range."""

import random
from collections.abc import Sequence

TRIES = 64
"""Ports of the range that are tried before it is said to be full."""


def candidates(ports: tuple[int, int], *, pairs: bool = False) -> Sequence[int]:
    """Ports between the first and the last of `ports` in any order, 0 for one that the system chooses where those are
    (0, 0). `pairs`: even ones, whose next belongs to the range as well."""
    first, last = ports
    if not first:
        return [0] * (TRIES if pairs else 1)
    among = range(first + first % 2, last, 2) if pairs else range(first, last + 1)
    return random.sample(among, min(TRIES, len(among)))
