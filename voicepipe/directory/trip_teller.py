"""What a PoP tells directories of its calls' round trips: once when a call has gone on for a while, and at its end."""

import asyncio

import msgspec

from voicepipe.directory import subjects
from voicepipe.directory.bus import Bus
from voicepipe.directory.subjects import RoundTrip
from voicepipe.line import Line

EARLY_S = 10.0
"""Of a call: two of its reports have mostly come by then, and a long call counts early."""
WAITING = 1000
"""Round trips that wait to be told; more are lost."""


class _Call:
    def __init__(self, line: Line, timer: asyncio.TimerHandle) -> None:
        self.line = line
        self.timer = timer
        self.told = False


class TripTeller:
    """Of one PoP."""

    def __init__(self, bus: Bus, pop: str) -> None:
        self._bus = bus
        self._subject = subjects.round_trip_of(pop)
        self._calls: dict[str, _Call] = {}
        self._waiting = asyncio.Queue[RoundTrip](WAITING)

    def began(self, call_id: str, line: Line) -> None:
        """A call has this line."""
        timer = asyncio.get_running_loop().call_later(EARLY_S, self._measured, call_id)
        self._calls[call_id] = _Call(line, timer)

    def ended(self, call_id: str) -> None:
        """Its line is still there."""
        self._measured(call_id)
        if call := self._calls.pop(call_id, None):
            call.timer.cancel()

    async def run(self) -> None:
        """Tell them, until cancelled."""
        while True:
            await self._bus.publish(self._subject, msgspec.json.encode(await self._waiting.get()))

    def _measured(self, call_id: str) -> None:
        call = self._calls.get(call_id)
        if call is None or not (network := call.line.caller_network) or self._waiting.full():
            return
        rtt_ms = call.line.network().rtt_ms
        if rtt_ms is not None:
            self._waiting.put_nowait(RoundTrip(network, round(rtt_ms, 1), call.told))
            call.told = True
