"""A stream that brings messages in masses takes turns with other calls: what counts is how often they get the loop."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from voicepipe.config import LimitsConfig
from voicepipe.ingress.asgi_scope import PEER
from voicepipe.ingress.telephony.dialects import TWILIO
from voicepipe.ingress.telephony.stream import StreamEndpoint
from voicepipe.ingress.telephony.wire import StreamWire

MANY = 20_000
START = {"event": "start", "streamSid": "MZ1", "start": {
    "callSid": "CA1", "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000}}}  # fmt: skip


class Flooded:
    """A socket whose next message is always there already."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        peer = SimpleNamespace(received_at=0.0, take_at_most=lambda message_bytes: None)
        self.scope: dict[str, Any] = {"extensions": {PEER: peer}}
        self._texts = [json.dumps(message) for message in reversed(messages)]

    async def receive(self) -> dict[str, Any]:
        if not self._texts:
            return {"type": "websocket.disconnect"}
        return {"type": "websocket.receive", "text": self._texts.pop()}


class FakeCall:
    """What a stream wants of one."""

    def __init__(self) -> None:
        self.limits = LimitsConfig()
        self.keys: list[str] = []
        self.reason = ""

    def press(self, key: str) -> None:
        self.keys.append(key)

    def end(self, reason: str) -> None:
        self.reason = reason


def wire(messages: list[dict[str, Any]]) -> StreamWire:
    return StreamWire(cast(Any, Flooded([START, *messages])), TWILIO, LimitsConfig(client_percent=100))


async def turns_beside(wire: StreamWire) -> tuple[int, FakeCall, list[str]]:
    """How often somebody else got the loop while all of the messages were carried out."""
    assert await wire.start()
    turns, marks, call = 0, list[str](), FakeCall()
    line = SimpleNamespace(mark=marks.append, transferring=False)
    provider = SimpleNamespace(dialect=TWILIO)
    none: Any = None
    streams = StreamEndpoint(none, none, cast(Any, provider), none, none)
    feeding = asyncio.create_task(streams._feed(wire, cast(Any, line), cast(Any, call)))
    while not feeding.done():
        turns += 1
        await asyncio.sleep(0)
    await feeding
    return turns, call, marks


@pytest.mark.parametrize("message", [
    {"event": "dtmf", "dtmf": {"digit": "1"}}, {"event": "mark", "mark": {"name": "1"}},
])  # fmt: skip
async def test_what_it_asks_for_is_carried_out_in_slices(message: dict[str, Any]) -> None:
    turns, call, marks = await turns_beside(wire([message] * MANY))
    assert len(call.keys) + len(marks) == MANY, "nothing is dropped"
    assert call.reason == "caller"
    assert turns > 10, "20,000 messages take far more than ten slices of 4 ms on any machine"
