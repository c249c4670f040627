"""The process itself: is its event loop on time, does it grow?"""

import asyncio
import resource
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from voicepipe.audio import opus
from voicepipe.base import memory, open_files
from voicepipe.health import Vitals

PERIOD_S = 0.01
KEPT, LATEST = 3000, 500
"""Samples of the loop's lag: for half a minute, and for the last 5 s of it."""
READ_EVERY = 100
"""Samples between readings of descriptors and memory: once a second."""


class ProcessWatch:
    """Measures how late the event loop runs what is due, and the process's resources. The lag shows what its CPU share
    hides: one blocking call."""

    def __init__(self) -> None:
        self._lags: deque[float] = deque(maxlen=KEPT)
        self._usage = {"fds": 0, "rss_kb": 0, "heap_kb": 0, "blocks": 0}

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            self._usage = await asyncio.to_thread(_usage)
            for _ in range(READ_EVERY):
                due = time.monotonic() + PERIOD_S
                await asyncio.sleep(PERIOD_S)
                self._lags.append(time.monotonic() - due)

    def lag_p99_ms(self) -> float:
        """The loop's lag in ms, 99th percentile of the last half minute; 0 before anything was measured."""
        return _p99_ms(self._lags)

    def lag_now_ms(self) -> float:
        """The loop's lag in ms, 99th percentile of the last 5 s."""
        return _p99_ms(islice(reversed(self._lags), LATEST))

    def vitals(self) -> Vitals:
        """The state of the process at present."""
        return Vitals(
            tasks=len(asyncio.all_tasks()),
            threads=threading.active_count(),
            codecs=opus.alive(),
            cpu_s=round(time.process_time(), 2),
            loop_lag_p99_ms=round(self.lag_p99_ms(), 2),
            **self._usage,
        )


def _p99_ms(lags_s: Iterable[float]) -> float:
    lags = sorted(lags_s)
    return max(0.0, lags[int(len(lags) * 0.99)] * 1000) if lags else 0.0


def _usage() -> dict[str, int]:
    used = {"heap_kb": memory.in_use_kb(), "blocks": sys.getallocatedblocks()}
    return {"fds": open_files.open_now(), "rss_kb": _resident_kb(), **used}


def _resident_kb() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # not Linux: its peak
    return pages * resource.getpagesize() // 1024
