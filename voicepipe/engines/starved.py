"""For how long a thread of ours could have run and had no processor: one that waits for a processor is slow and does
not hang. Only Linux tells; elsewhere it is 0."""

import os
import threading
import time
from collections.abc import Iterable

STEAL = 8
"""Column of /proc/stat (proc_stat(5)): what a virtual machine's host kept for others."""
MOST = 65_536
"""Bytes of it that are read: its processors, which come first."""
FRESH_S = 1.0
"""/proc/stat is read no more often than this for threads that begin something; it takes a thirtieth of a ms."""


class Starved:
    """The thread that makes it, from now on."""

    __slots__ = ("_stolen", "_thread", "_waited_s")

    def __init__(self) -> None:
        self._thread = threading.get_native_id()
        self._waited_s = _waited_s(self._thread)
        self._stolen = _lately.stolen()

    def seconds(self) -> float:
        """It has waited among the machine's own threads, or its processor was with the host's others. Which processor
        it had nobody knows: the worst one counts."""
        return _waited_s(self._thread) - self._waited_s + worst(self._stolen, stolen_s())


def worst(before: Iterable[float], after: Iterable[float]) -> float:
    """Pure: what was stolen of that processor of which most was. Those that came or went meanwhile do not count."""
    return max((now - then for then, now in zip(before, after, strict=False)), default=0.0)


def stolen_s() -> tuple[float, ...]:
    """Seconds of each processor since the machine started that its host kept for others; empty where nobody tells."""
    try:
        with open("/proc/stat", "rb", buffering=0) as told:
            return steals(told.read(MOST).decode(), os.sysconf("SC_CLK_TCK"))
    except (OSError, IndexError, ValueError):
        return ()


def steals(stat: str, ticks: int) -> tuple[float, ...]:
    """Pure: the same of /proc/stat, of so many ticks a second. Raises IndexError, ValueError."""
    lines = [line for line in stat.splitlines() if line.startswith("cpu") and line[3].isdigit()]
    return tuple(int(line.split()[STEAL]) / ticks for line in lines)


def _waited_s(thread: int) -> float:
    """How long it has been ready to run and waited for a processor."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat", "rb", buffering=0) as told:
            return int(told.read(100).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


class _Lately:
    """What was stolen, FRESH_S ago at most: too much counts as stolen then, which errs on the side of patience."""

    def __init__(self) -> None:
        self._at = -FRESH_S
        self._stolen: tuple[float, ...] = ()

    def stolen(self) -> tuple[float, ...]:
        now = time.monotonic()
        if now - self._at >= FRESH_S:
            self._at, self._stolen = now, stolen_s()
        return self._stolen


_lately = _Lately()
