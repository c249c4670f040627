"""The time that this process lived, for the limits of engines.

A process that was stopped (SIGSTOP, `docker pause`), or whose event loop stood still, wakes up to answers that look
overdue: they had no time to be made, or nobody to take them.
"""

import threading
import time

LOOK_S = 1.0
"""Seconds: whoever waits looks more often than this, so no more of a longer time between two looks counts."""


class ProcessClock:
    """A clock of the time that this process ran: monotonic seconds, as `time.monotonic`, without long pauses. Any
    thread may read it."""

    def __init__(self) -> None:
        self._looked = time.monotonic()
        self._lost_s = 0.0
        self._one = threading.Lock()

    def __call__(self) -> float:
        with self._one:
            now = time.monotonic()
            self._lost_s += max(0.0, now - self._looked - LOOK_S)
            self._looked = now
            return now - self._lost_s
