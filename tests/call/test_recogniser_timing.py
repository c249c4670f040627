"""A PoP that has just started says a sentence to itself, to know how long its recogniser takes. In virtual time."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.support.scripted import ScriptedAsr, ScriptedAsrStream, ScriptedLlm, ScriptedTts, ScriptedVad
from voicepipe.base.errors import EngineError
from voicepipe.call.recogniser_timing import SENTENCE, time_recogniser
from voicepipe.engines.base import NO_HINTS, AsrHints, Engines, OnPartial, Speech

pytestmark = pytest.mark.virtual_time


class Asr(ScriptedAsr):
    """Keeps its streams."""

    def __init__(self, settle_ms: float = 50.0) -> None:
        super().__init__(["a table for two"], settle_ms=settle_ms)
        self.made: list[ScriptedAsrStream] = []

    def stream(self, on_partial: OnPartial, hints: AsrHints = NO_HINTS) -> ScriptedAsrStream:
        self.made.append(super().stream(on_partial, hints))
        return self.made[-1]


class Mute(ScriptedTts):
    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        raise EngineError("no voice")
        yield


def engines(asr: Asr, tts: ScriptedTts | None = None) -> Engines:
    return Engines(ScriptedVad(), asr, ScriptedLlm(), tts or ScriptedTts())


async def test_how_long_the_recogniser_takes_is_known_then() -> None:
    slow, tts = Asr(settle_ms=100), ScriptedTts()
    one = engines(slow, tts)
    assert one.patience.ms(0, 9000) == 9000
    await time_recogniser(one, lambda: False)
    assert one.patience.is_informed and one.patience.ms(0, 9000) < 9000
    assert tts.spoken == [SENTENCE] and [stream._over for stream in slow.made] == [True]


async def test_who_knows_already_says_nothing() -> None:
    one = engines(Asr(), tts := ScriptedTts())
    one.patience.took(80)
    await time_recogniser(one, lambda: False)
    assert tts.spoken == []


async def test_somebody_who_calls_meanwhile_goes_before_it() -> None:
    asr = Asr()
    one = engines(asr)
    loop = asyncio.get_running_loop()
    ends = loop.time() + 1
    await time_recogniser(one, lambda: loop.time() > ends)
    assert not one.patience.is_informed and [stream._over for stream in asr.made] == [True]
    assert loop.time() < ends + 0.2


async def test_a_voice_that_fails_leaves_it_unknown(caplog: pytest.LogCaptureFixture) -> None:
    one = engines(Asr(), Mute())
    await time_recogniser(one, lambda: False)
    assert not one.patience.is_informed
    assert "how long the recogniser takes is not known before the first turn: no voice" in caplog.text
