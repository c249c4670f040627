"""Keys that a caller presses by RTP: as many as telephone systems press, also before the ACK, and no floods."""

import asyncio
import logging
import time
from typing import Any

import pytest

from tests.ingress.fake_pop import FakeCall, FakePop
from tests.ingress.sip.peer import Phone, calling, sip
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from tests.support.waiting import until
from voicepipe.call.call import Call
from voicepipe.call.call_context import CallServices
from voicepipe.call_api import CallControl, Observer
from voicepipe.call_settings import CallSettings
from voicepipe.conversation.events import CallEvent, ReplyDone
from voicepipe.engines.base import Engines
from voicepipe.ingress.hosted_call import KEYS as RATE
from voicepipe.line import Line
from voicepipe.rtp.telephone_events import KEYS, TelephoneEvent

EVENTS = 101
FLOOD = 2000
"""Keys."""


@pytest.fixture
def pressed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys that calls are told of."""
    keys: list[str] = []
    monkeypatch.setattr(FakeCall, "press", lambda call, key: keys.append(key))
    return keys


def press(ann: Phone, key: str) -> None:
    """All that is needed of a key: one packet, with a timestamp of its own."""
    ann.say(payload_type=EVENTS, payload=bytes(TelephoneEvent(KEYS.index(key), True, 160)))


async def test_a_flood_of_keys_is_cut_to_what_a_telephone_system_presses(
    pressed: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with calling(FakePop(sip())) as ann:
        ann.media_of(await ann.dial())
        began = time.monotonic()
        for n in range(FLOOD):
            press(ann, "1")
            if n % 40 == 39:  # Fewer than the socket's own limit.
                await asyncio.sleep(0.02)
        await until(lambda: len(pressed) >= RATE.burst)
        assert (await ann.hang_up()).code == 200
        most = RATE.burst + RATE.per_s * (time.monotonic() - began) + 1
    assert RATE.burst <= len(pressed) <= most
    assert caplog.text.count("keys a second are pressed") == 1


async def test_a_number_dialled_as_fast_as_tones_can_be_told_apart_comes_whole(pressed: list[str]) -> None:
    """40 keys that a network has held up, and then 12 a second."""
    async with calling(FakePop(sip())) as ann:
        ann.media_of(await ann.dial())
        for _ in range(4):
            for key in "1234567890":
                press(ann, key)
            await asyncio.sleep(0.02)
        for key in "1234567890*#":
            await asyncio.sleep(0.08)
            press(ann, key)
        await until(lambda: pressed[-1:] == ["#"])
        assert "".join(pressed) == 4 * "1234567890" + "1234567890*#"
        await ann.hang_up()


async def test_keys_before_the_ack_are_pressed_after_it(pressed: list[str], caplog: pytest.LogCaptureFixture) -> None:
    """A telephone system dials as soon as it is answered, and its ACK goes by way of a proxy."""
    async with calling(FakePop(sip())) as ann:
        ann.invite()
        answer = await ann.final("INVITE")
        ann.took(answer)
        ann.media_of(answer)
        for key in "4711":
            press(ann, key)
        await asyncio.sleep(0.1)
        assert not pressed, "nothing happens before the ACK"
        ann.ack()
        await until(lambda: ann.heard())
        press(ann, "#")
        await until(lambda: pressed[-1:] == ["#"])
        assert "".join(pressed) == "4711#"
        await ann.hang_up()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


class RealCalls(FakePop):
    """Calls as they are, with scripted engines."""

    def __init__(self) -> None:
        super().__init__(sip())
        self.events: list[CallEvent] = []

    def open(self, line: Line, settings: CallSettings, observer: Observer) -> CallControl:
        def emit(event: CallEvent) -> None:
            self.events.append(event)
            observer(event)

        def no_tools(*_: Any, **__: Any) -> "asyncio.Task[str]":
            raise AssertionError("there are no tools")

        engines = Engines(ScriptedVad(), ScriptedAsr([]), ScriptedLlm(), ScriptedTts(char_ms=20))
        return Call("rtc_1", line, settings, engines, self.config, CallServices(no_tools), emit, time.monotonic)


async def test_a_call_whose_first_key_overtakes_the_ack_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    pop = RealCalls()
    async with calling(pop) as ann:
        ann.invite()
        answer = await ann.final("INVITE")
        ann.took(answer)
        ann.media_of(answer)
        press(ann, "4")
        await asyncio.sleep(0.1)
        ann.ack()
        await until(lambda: [event for event in pop.events if isinstance(event, ReplyDone)])
        await until(lambda: ann.loudest() > 1000)
        assert (await ann.hang_up()).code == 200
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
