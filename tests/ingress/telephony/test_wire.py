"""One media stream's WebSocket."""

import asyncio
import logging
from typing import Any, cast

import pytest

from tests.ingress.telephony.test_stream import START, Flooded, turns_beside, wire
from voicepipe.config import LimitsConfig
from voicepipe.ingress.telephony.dialects import TWILIO
from voicepipe.ingress.telephony.wire import MOST_BAD, StreamWire

MANY = 20_000


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
