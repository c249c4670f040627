"""A PoP's reports to directories: its state, once a second, and at once when it begins to drain; and its calls' round
trips."""

import asyncio
import time
from collections.abc import Callable
from random import Random

import msgspec

from voicepipe.directory.bus import Bus
from voicepipe.directory.report import Condition, Epoch, PopReport
from voicepipe.directory.subjects import GOODBYES, REPORTS, ROUND_TRIPS, PopGoodbye, RoundTrip, of_pop
from voicepipe.line import Line

EVERY_S = 1.0
UNEVEN = 0.1
"""Part by which the interval varies: PoPs that begin together do not go on reporting together."""
REPEATED_S = 10.0
"""Seconds for which reports contain a call that began, for directories that missed one."""
TRIP_EVERY_S = 10.0
"""Seconds between measurements of a call's round trip. It is published after the first: two reports of RTCP have mostly
come by then, and a long call counts early."""
WAITING = 1000
"""Round trips that may wait to be published; more are dropped."""


class Reporter:
    """Publishes a PoP's reports to the directories: once a second, and at once when it begins to drain. `describe`
    gives the PoP's condition at this moment; `clock` gives monotonic seconds, `wall_clock` Unix ones."""

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
        """Identifies this run."""
        self._bus = bus
        self._pop = pop
        self._describe = describe
        self._clock = clock
        self._wall_clock = wall_clock
        self._lots = lots or Random()
        self._seq = 0
        self._begun: dict[str, float] = {}
        """When assigned calls began, by the ids of their placements."""
        self._at_once = asyncio.Event()

    def began(self, placement_id: str) -> None:
        """A call that a directory assigned has begun."""
        self._begun[placement_id] = self._clock()

    def report_now(self) -> None:
        """Report now, without waiting for the second."""
        self._at_once.set()

    async def run(self) -> None:
        """Report until cancelled; then say goodbye."""
        try:
            while True:
                self._at_once.clear()
                await self._bus.publish(of_pop(REPORTS, self._pop), msgspec.json.encode(self._report()))
                try:
                    async with asyncio.timeout(EVERY_S * self._lots.uniform(1 - UNEVEN, 1 + UNEVEN)):
                        await self._at_once.wait()
                except TimeoutError:
                    pass
        finally:
            await self._bus.publish(of_pop(GOODBYES, self._pop), msgspec.json.encode(PopGoodbye(self.epoch)))

    def _report(self) -> PopReport:
        now = self._clock()
        self._begun = {placement_id: at for placement_id, at in self._begun.items() if now - at < REPEATED_S}
        report = PopReport(
            epoch=self.epoch, seq=self._seq, uptime_s=now, clock_s=self._wall_clock(), condition=self._describe(),
            begun=tuple(self._begun),
        )  # fmt: skip
        self._seq += 1
        return report


class _MeasuredCall:
    def __init__(self, line: Line) -> None:
        self.line = line
        self.timer: asyncio.TimerHandle | None = None
        self.least_ms: float | None = None
        """The shortest round trip so far: a buffer that was full for a moment does not count."""
        self.published = False

    def measure(self) -> None:
        ms = self.line.network().rtt_ms
        if ms and (self.least_ms is None or ms < self.least_ms):  # One of 0 says that the caller's clock is wrong.
            self.least_ms = ms


class TripReporter:
    """Publishes the round trips of a PoP's calls: once when a call has gone on for a while, and at its end."""

    def __init__(self, bus: Bus, pop: str) -> None:
        self._bus = bus
        self._subject = of_pop(ROUND_TRIPS, pop)
        self._calls: dict[str, _MeasuredCall] = {}
        self._waiting = asyncio.Queue[RoundTrip](WAITING)

    def began(self, call_id: str, line: Line) -> None:
        """A call has begun, with this line."""
        self._calls[call_id] = _MeasuredCall(line)
        self._read_later(call_id)

    def ended(self, call_id: str) -> None:
        """A call has ended; its line still exists."""
        if call := self._calls.pop(call_id, None):
            if call.timer:
                call.timer.cancel()
            call.measure()
            self._publish(call)

    async def run(self) -> None:
        """Publish round trips, until cancelled."""
        while True:
            await self._bus.publish(self._subject, msgspec.json.encode(await self._waiting.get()))

    def _read_later(self, call_id: str) -> None:
        self._calls[call_id].timer = asyncio.get_running_loop().call_later(TRIP_EVERY_S, self._read, call_id)

    def _read(self, call_id: str) -> None:
        call = self._calls[call_id]
        call.measure()
        if not call.published:
            self._publish(call)
        self._read_later(call_id)

    def _publish(self, call: _MeasuredCall) -> None:
        network = call.line.caller_network
        if network and call.least_ms is not None and not self._waiting.full():
            self._waiting.put_nowait(RoundTrip(network, round(call.least_ms, 1), call.published))
            call.published = True
