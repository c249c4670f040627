"""What a PoP tells directories: how it is, once a second, and at once when it begins to drain."""

import asyncio
import time
from collections.abc import Callable
from random import Random

import msgspec

from voicepipe.directory import subjects
from voicepipe.directory.bus import Bus
from voicepipe.directory.report import Condition, Epoch, PopReport, encoded
from voicepipe.directory.subjects import PopGoodbye

EVERY_S = 1.0
UNEVEN = 0.1
"""Of that time, more or less: many PoPs that begin together do not go on reporting together."""
TOLD_S = 10.0
"""So long a call that began is told of, for directories that missed a report."""


class Reporter:
    """`describe` gives the PoP's condition at this moment; `clock` gives monotonic seconds, `wall_clock` Unix ones."""

    def __init__(
        self,
        bus: Bus,
        pop: str,
        describe: Callable[[], Condition],
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        lots: Random | None = None,
    ) -> None:
        self.epoch: Epoch = int(1000 * wall_clock())
        """Of this run."""
        self._bus = bus
        self._pop = pop
        self._describe = describe
        self._clock = clock
        self._wall_clock = wall_clock
        self._lots = lots or Random()
        self._seq = 0
        self._begun: dict[str, float] = {}
        """Assigned calls that began, and when."""
        self._at_once = asyncio.Event()

    def began(self, call: str) -> None:
        """A call that a directory assigned has begun."""
        self._begun[call] = self._clock()

    def tell(self) -> None:
        """Report now, and not only when the second is over."""
        self._at_once.set()

    async def run(self) -> None:
        """Report until cancelled; then say goodbye."""
        try:
            while True:
                self._at_once.clear()
                await self._bus.publish(subjects.report_of(self._pop), encoded(self._report()))
                try:
                    async with asyncio.timeout(EVERY_S * self._lots.uniform(1 - UNEVEN, 1 + UNEVEN)):
                        await self._at_once.wait()
                except TimeoutError:
                    pass
        finally:
            await self._bus.publish(subjects.goodbye_of(self._pop), msgspec.json.encode(PopGoodbye(self.epoch)))

    def _report(self) -> PopReport:
        now = self._clock()
        self._begun = {call: at for call, at in self._begun.items() if now - at < TOLD_S}
        report = PopReport(
            epoch=self.epoch, seq=self._seq, uptime_s=now, clock_s=self._wall_clock(), condition=self._describe(),
            begun=tuple(self._begun),
        )  # fmt: skip
        self._seq += 1
        return report
