"""One 20 ms clock for all calls of a process."""

import asyncio
import logging
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

PERIOD_S = 0.020
PHASES = 4
"""Calls tick in groups, 5 ms apart, so that they do not all need the processor at the same moment."""
TOGETHER = 16
"""Calls of a group that tick together, since code that runs again is in the processor's caches."""
SWITCH_S = 0.0005
"""Seconds, for `sys.setswitchinterval`. A thread that computes in Python gives up the interpreter after so long, if
another asks for it. The event loop asks each time that this clock wakes it; by default it would wait for 5 ms."""

Tick = Callable[[float], None]


class MediaClock:
    """One 20 ms clock for all calls of a process. It calls each tick that was added every 20 ms, with the monotonic
    second, by a single timer."""

    def __init__(self) -> None:
        self.late_s = 0.0
        """By how much the ticks that are running now come late."""
        self._phases: list[set[Tick]] = [set() for _ in range(PHASES)]
        self._added = asyncio.Event()

    def add(self, tick: Tick) -> Callable[[], None]:
        """Call the tick from now on, until the function that is returned is called."""
        phase = next((phase for phase in self._phases if len(phase) < TOGETHER), min(self._phases, key=len))
        phase.add(tick)
        self._added.set()
        return lambda: phase.discard(tick)

    async def run(self) -> None:
        """Run until cancelled. A tick that fails is logged: it is one call's, and all calls depend on this clock."""
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
