"""What a PoP tells directories of its calls' round trips: once when a call has gone on for a while, and at its end."""

import asyncio

import msgspec

from voicepipe.directory import subjects
from voicepipe.directory.bus import Bus
from voicepipe.directory.subjects import RoundTrip
from voicepipe.line import Line

EVERY_S = 10.0
"""A call's round trip is read so often. After the first time it is told: two reports of RTCP have mostly come by then,
and a long call counts early."""
WAITING = 1000
"""Round trips that wait to be told; more are lost."""


class _Call:
    def __init__(self, line: Line) -> None:
        self.line = line
        self.timer: asyncio.TimerHandle | None = None
        self.least_ms: float | None = None
        """A moment's full buffer does not count."""
        self.told = False

    def measure(self) -> None:
        ms = self.line.network().rtt_ms
        if ms and (self.least_ms is None or ms < self.least_ms):  # One of 0 says that the caller's clock is wrong.
            self.least_ms = ms


class TripTeller:
    """Of one PoP."""

    def __init__(self, bus: Bus, pop: str) -> None:
        self._bus = bus
        self._subject = subjects.round_trip_of(pop)
        self._calls: dict[str, _Call] = {}
        self._waiting = asyncio.Queue[RoundTrip](WAITING)

    def began(self, call_id: str, line: Line) -> None:
        """A call has this line."""
        self._calls[call_id] = _Call(line)
        self._read_later(call_id)

    def ended(self, call_id: str) -> None:
        """Its line is still there."""
        if call := self._calls.pop(call_id, None):
            if call.timer:
                call.timer.cancel()
            call.measure()
            self._tell(call)

    async def run(self) -> None:
        """Tell them, until cancelled."""
        while True:
            await self._bus.publish(self._subject, msgspec.json.encode(await self._waiting.get()))

    def _read_later(self, call_id: str) -> None:
        self._calls[call_id].timer = asyncio.get_running_loop().call_later(EVERY_S, self._read, call_id)

    def _read(self, call_id: str) -> None:
        call = self._calls[call_id]
        call.measure()
        if not call.told:
            self._tell(call)
        self._read_later(call_id)

    def _tell(self, call: _Call) -> None:
        network = call.line.caller_network
        if network and call.least_ms is not None and not self._waiting.full():
            self._waiting.put_nowait(RoundTrip(network, round(call.least_ms, 1), call.told))
            call.told = True
