"""One 20 ms clock for all calls of a process."""

import asyncio
import logging
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

PERIOD_S = 0.020
PHASES = 4
"""Calls tick in turns, 5 ms apart, so that they do not all want the processor in the same moment ..."""
TOGETHER = 16
"""... but so many at a time, since what follows the same path finds it in the processor's caches."""
SWITCH_S = 0.0005
"""For `sys.setswitchinterval`. A thread that computes in Python lets another one have the interpreter after so long, if
that asks for it. The event loop asks each time that this clock wakes it; by default it would wait for 5 ms."""

Tick = Callable[[float], None]


class MediaClock:
    """Calls every tick that was added once in 20 ms, with the monotonic second. One timer, whatever the calls."""

    def __init__(self) -> None:
        self.late_s = 0.0
        """By how much the ticks that are running now come late."""
        self._phases: list[set[Tick]] = [set() for _ in range(PHASES)]
        self._added = asyncio.Event()

    def add(self, tick: Tick) -> Callable[[], None]:
        """Tick from now on, until the function that is returned is called."""
        phase = next((phase for phase in self._phases if len(phase) < TOGETHER), min(self._phases, key=len))
        phase.add(tick)
        self._added.set()
        return lambda: phase.discard(tick)

    async def run(self) -> None:
        """Tick until cancelled. A tick that fails is logged: it is one call's, and all of them hang on this."""
        step, turn = PERIOD_S / PHASES, 0
        due = time.monotonic() + step
        while True:
            if not any(self._phases):
                self._added.clear()
                await self._added.wait()
                due = time.monotonic() + step
            await asyncio.sleep(due - time.monotonic())
            planned, due = due, max(due, time.monotonic() - PERIOD_S)  # Ticks that a stall swallowed are not made up.
            # Where wake-ups of the loop are further apart than our turns, several turns are due.
            for _ in range(PHASES):
                self.late_s = max(0.0, time.monotonic() - planned)
                self._tick(self._phases[turn])
                turn = (turn + 1) % PHASES
                planned, due = planned + step, due + step
                if due > time.monotonic():
                    break

    @staticmethod
    def _tick(phase: set[Tick]) -> None:
        for tick in tuple(phase):
            try:
                tick(time.monotonic())
            except Exception:
                logger.exception("a media stream failed")
