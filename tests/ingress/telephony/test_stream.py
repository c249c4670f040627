"""A stream that brings messages in masses takes turns with other calls: what counts is how often they get the loop."""

import asyncio
import json
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from voicepipe.config import LimitsConfig
from voicepipe.ingress.telephony.dialects import TWILIO
from voicepipe.ingress.telephony.stream import Streams
from voicepipe.ingress.telephony.wire import MOST_BAD, StreamWire

MANY = 20_000
START = {"event": "start", "streamSid": "MZ1", "start": {
    "callSid": "CA1", "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000}}}  # fmt: skip


class Flooded:
    """A socket whose next message is always there already."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.scope: dict[str, Any] = {}
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
    streams = Streams(cast(Any, None), cast(Any, None), cast(Any, provider), cast(Any, None))
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


async def test_what_does_not_concern_us_is_read_in_turn_with_others() -> None:
    turns, _, _ = await turns_beside(wire([{"event": "connected"}] * MANY))
    assert turns > MANY


async def test_also_before_the_stream_begins() -> None:
    socket = Flooded([{"event": "connected"}] * MANY + [START])
    starting = asyncio.create_task(StreamWire(cast(Any, socket), TWILIO, LimitsConfig()).start())
    turns = 0
    while not starting.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > MANY / 2
    assert await starting


async def test_who_is_slowed_stands_in_the_log_and_a_provider_s_troubles_do_not_fill_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trouble = {"event": "error", "payload": {"code": 1, "title": "no"}}
    many = wire([*[trouble] * 1000, {"event": "dtmf", "dtmf": {"digit": "1"}}])
    with caplog.at_level(logging.WARNING):
        assert await many.start()
        assert await many.next() is not None
        assert caplog.text.count("the provider says") == MOST_BAD
        many.slowed("too much")
    assert "twilio: stream 'MZ1' is slowed: too much" in caplog.text
