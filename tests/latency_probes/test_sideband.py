"""Sound beside events: to which reply it is ascribed."""

import json

import pytest

from latency_probes.sideband import UNANNOUNCED, Ascriber, beside
from latency_probes.timeline import Timeline
from tests.ingress.fake_pop import FakePop, serving, tone
from voicepipe.audio import Pcm
from voicepipe.base.errors import ProbeError

LOUD = tone(480, 24_000)


def added(item: str) -> str:
    return json.dumps(
        {"type": "response.output_item.added", "response_id": "r", "item": {"type": "message", "id": item}}
    )


def sounds(line: Timeline) -> dict[str, int]:
    return {item: reply.pcm.size // LOUD.size for item, reply in line.replies.items()}


def test_sound_that_overtakes_its_announcement_belongs_to_it() -> None:
    line = Timeline()
    ascriber = Ascriber(line)
    for arrived in (9.0, 10.0, 10.05):
        ascriber.sound(LOUD, arrived)
    ascriber.event(added("a"), 10.06)
    ascriber.sound(LOUD, 10.07)
    assert sounds(line) == {"a": 3}


def test_silence_before_a_reply_is_not_its_beginning() -> None:
    line = Timeline()
    ascriber = Ascriber(line)
    silence: Pcm = LOUD * 0
    ascriber.sound(silence, 10.0)
    ascriber.sound(LOUD, 10.02)
    ascriber.event(added("a"), 10.03)
    assert sounds(line) == {"a": 1}


def test_what_sounds_before_the_events_come_has_an_item_of_its_own() -> None:
    line = Timeline()
    ascriber = Ascriber(line, UNANNOUNCED)
    ascriber.sound(LOUD, 10.0)
    ascriber.event(added("a"), 10.5)
    ascriber.sound(LOUD, 10.6)
    ascriber.event('{"type":"output_audio_buffer.stopped","response_id":"r"}', 11.0)
    ascriber.sound(LOUD, 12.0)
    assert sounds(line) == {UNANNOUNCED: 1, "a": 1}


async def test_a_call_that_is_not_there() -> None:
    async with serving(FakePop()) as address:
        with pytest.raises(ProbeError, match="HTTP 404"):
            await beside(f"http://{address}", "rtc_none", "")
    with pytest.raises(ProbeError, match="start one"):
        await beside("http://127.0.0.1:9", "rtc_none", "")
