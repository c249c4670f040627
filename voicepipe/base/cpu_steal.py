"""For how long threads of ours could have run and had no processor: a job that waits for a processor is slow and does
not hang. Only Linux tells; elsewhere it is 0.

Which threads compute for a job nobody knows: those of CTranslate2 and onnxruntime do, while its own thread sleeps.
They are as nice as the thread that made them, a worker's. So of all threads that are as nice as the job's own the one
that waited longest counts, which errs on the side of patience.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Generic, TypeVar

STEAL = 8
"""Column of /proc/stat (proc_stat(5)): time that a virtual machine's host kept for others."""
MOST = 65_536
"""Bytes of it that are read: its processors come first."""
FRESH_S = 1.0
"""Seconds for which a reading is used for jobs that begin, since it takes a ms. A job that gets an older reading is
given more time: patience again."""
T = TypeVar("T")


class CpuSteal:
    """Measures for how long a job of the thread that makes it could have run and had no processor."""

    __slots__ = ("_stolen", "_waited")

    def __init__(self) -> None:
        own = threading.get_native_id()
        self._stolen, self._waited = _stolen.value(), _waited(_niceness(own)).value()
        if own not in self._waited:  # It is new.
            self._waited = self._waited | waited_s((own,))

    def seconds(self) -> float:
        """Seconds for which threads that may work for it waited for one of the machine's processors, or their processor
        was with the host's others. Which processor they had is unknown: the worst one counts."""
        return longest(self._waited, waited_s(self._waited)) + worst(self._stolen, stolen_s())


class CachedReading(Generic[T]):
    """A reading of `read` that is at most FRESH_S old."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._last: tuple[float, T] | None = None

    def value(self) -> T:
        """The reading. May be called by any thread; two at once read it twice."""
        now, last = time.monotonic(), self._last
        if last is None or now - last[0] >= FRESH_S:
            last = self._last = now, self._read()
        return last[1]


def longest(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """The wait of the thread that waited longest. One that ended meanwhile does not count. Pure."""
    return max((waited - before[thread] for thread, waited in after.items()), default=0.0)


def worst(before: Iterable[float], after: Iterable[float]) -> float:
    """The steal of the processor with the most of it. Those that came or went meanwhile do not count. Pure."""
    return max((now - then for then, now in zip(before, after, strict=False)), default=0.0)


def stolen_s() -> tuple[float, ...]:
    """Seconds of each processor since the machine started that its host kept for others; empty where they are
    unknown."""
    try:
        with open("/proc/stat", "rb", buffering=0) as file:
            return steals(file.read(MOST).decode(), os.sysconf("SC_CLK_TCK"))
    except (OSError, IndexError, ValueError):
        return ()


def steals(stat: str, ticks: int) -> tuple[float, ...]:
    """The stolen seconds of each processor, from the text of /proc/stat with so many ticks a second. Raises IndexError,
    ValueError. Pure."""
    lines = [line for line in stat.splitlines() if line.startswith("cpu") and line[3].isdigit()]
    return tuple(int(line.split()[STEAL]) / ticks for line in lines)


def waited_s(threads: Iterable[int]) -> dict[int, float]:
    """Seconds for which each of these threads, of this process, has been ready to run and waited for a processor."""
    waited: dict[int, float] = {}
    for thread in threads:
        with (
            suppress(OSError, ValueError, IndexError),  # It ended, or the system does not say.
            open(f"/proc/self/task/{thread}/schedstat", "rb", buffering=0) as file,
        ):
            waited[thread] = int(file.read(100).split()[1]) / 1e9
    return waited


def _as_nice(nice: int) -> Iterator[int]:
    """Threads of this process with this priority. Reads a folder: not for the event loop."""
    with suppress(OSError):
        for thread in map(int, os.listdir("/proc/self/task")):
            with suppress(OSError):  # It ended.
                if _niceness(thread) == nice:
                    yield thread


def _niceness(thread: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, thread) if sys.platform == "linux" else 0


_stolen = CachedReading(stolen_s)


@cache
def _waited(nice: int) -> CachedReading[dict[int, float]]:
    return CachedReading(lambda: waited_s(_as_nice(nice)))
