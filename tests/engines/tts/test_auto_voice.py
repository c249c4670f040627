"""The voice `auto`: who speaks for whom, at one rate, and what is done where hibari is not to be had."""

import sys
from collections.abc import AsyncIterator

import numpy as np
import pytest

from tests.engines.contract import TtsContract, assert_same_speech, whole
from voicepipe.agent import Agent
from voicepipe.audio import RATE
from voicepipe.base.errors import EngineError
from voicepipe.call.speech import PhraseSpeaker
from voicepipe.call_settings import CallSettings
from voicepipe.config import Config
from voicepipe.config.engine_config import EnginesConfig, EspeakConfig
from voicepipe.engines.loader import choose
from voicepipe.engines.tts.auto_voice import AutoTts
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.tts.hibari import HibariTts

pytestmark = pytest.mark.engine
TEXT = "A table for two, on Friday at seven."


class TestAutoTts(TtsContract):
    @staticmethod
    def factory() -> AutoTts:
        return AutoTts(EspeakConfig())


@pytest.fixture
async def tts() -> AsyncIterator[AutoTts]:
    engine = AutoTts(EspeakConfig())
    await engine.start()
    yield engine
    await engine.close()


@pytest.fixture
def without_hibari(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hibari", None)


def test_it_is_the_default() -> None:
    assert isinstance(choose(Config(engines=EnginesConfig(asr="scripted"))).tts, AutoTts)


SPEAKS = {
    ("", ""): "heart", ("", "en"): "heart", ("", "en-GB"): "heart", ("", "de"): "de", ("", "de-AT"): "de",
    ("", "fr"): "fr-fr", ("", "pt-BR"): "pt-br", ("", "pt-PT"): "pt", ("", "es-MX"): "es", ("", "zh-CN"): "cmn",
    ("", "no"): "nb", ("heart", "de"): "heart", ("en-gb", "en"): "en-gb", ("en-GB", "en"): "en-GB",
    ("en-us+Annie", "en"): "en-us+Annie", ("alloy", "en"): "heart", ("alloy", "it"): "it", ("", "xx"): "en-us",
    ("emma", "en"): "heart",
}  # fmt: skip
"""Who speaks, by the voice that is asked for and the agent's language."""


async def test_the_language_decides_unless_there_is_a_voice_of_that_name(tts: AutoTts) -> None:
    assert {asked: tts.voice_for(*asked) for asked in SPEAKS} == SPEAKS


async def test_each_speaks_as_it_does_alone(tts: AutoTts) -> None:
    hibari, espeak = HibariTts(), EspeakTts()
    for engine in (hibari, espeak):
        await engine.start()
    assert np.array_equal((await whole(tts, TEXT)).pcm, (await whole(hibari, TEXT)).pcm)
    converted, alone = await whole(tts, TEXT, voice="de"), await whole(espeak, TEXT, voice="de")
    assert tts.rate == hibari.rate != espeak.rate
    assert converted.pcm.size / tts.rate == pytest.approx(alone.pcm.size / espeak.rate, abs=0.001)
    assert [word.text for word in converted.words] == [word.text for word in alone.words]
    for one, other in zip(converted.words, alone.words, strict=True):
        assert one.end / tts.rate == pytest.approx(other.end / espeak.rate, abs=0.001)
    for engine in (hibari, espeak):
        await engine.close()


async def test_a_call_is_spoken_to_in_its_agent_s_language(tts: AutoTts) -> None:
    async def lasts(agent: Agent) -> int:
        """Samples: each voice takes its own time."""
        settings = CallSettings.of(agent)
        phrase = await PhraseSpeaker(tts, RATE, agent).whole(TEXT, voice=settings.voice, speed=settings.speed)
        assert phrase
        return phrase.pcm.size

    english, german = await lasts(Agent("a")), await lasts(Agent("b", language="de"))
    assert abs(english - german) > 0.1 * german
    assert await lasts(Agent("c", language="en-GB")) == english
    for agent in (Agent("d", language="de", voice="de"), Agent("e", voice="de")):
        assert await lasts(agent) == pytest.approx(german, rel=0.02)


async def test_what_hibari_cannot_read_at_all_is_read_by_espeak(tts: AutoTts) -> None:
    assert (await whole(tts, "您好，早上好。")).pcm.size
    assert not (await whole(tts, "...")).pcm.size


async def test_where_hibari_cannot_be_loaded_espeak_speaks_and_the_log_says_why(
    without_hibari: None, caplog: pytest.LogCaptureFixture
) -> None:
    tts, espeak = AutoTts(EspeakConfig(voice="en-gb")), EspeakTts("en-gb")
    await tts.start()
    await espeak.start()
    assert "hibari is not installed" in tts.lacks and tts.lacks in caplog.text
    assert tts.alive and tts.rate == espeak.rate and tts.voices() == espeak.voices()
    assert [tts.voice_for(*asked) for asked in (("", "en"), ("heart", "en"), ("", "de"))] == ["en-gb", "en-gb", "de"]
    assert_same_speech(await whole(tts, TEXT), await whole(espeak, TEXT))
    await tts.close()
    await espeak.close()


async def test_without_espeak_hibari_reads_every_language_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    tts, hibari = AutoTts(EspeakConfig()), HibariTts()
    await tts.start()
    await hibari.start()
    assert "hibari reads all languages as English" in caplog.text and "voicepipe-pop[espeak]" in tts.lacks
    assert tts.alive and tts.rate == hibari.rate and tts.voices() == hibari.voices()
    assert {tts.voice_for(*asked) for asked in (("", "en"), ("heart", "en"), ("", "de"), ("de", "de"))} == {"heart"}
    assert_same_speech(await whole(tts, TEXT), await whole(hibari, TEXT))
    assert not (await whole(tts, "您好，早上好。")).pcm.size
    await tts.close()
    await hibari.close()


async def test_without_both_it_does_not_start(without_hibari: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(EngineError, match="hibari is not installed"):
        await AutoTts(EspeakConfig()).start()


async def test_a_wrong_voice_of_espeak_is_refused() -> None:
    with pytest.raises(EngineError, match=r"espeak\.voice is 'en-uss'"):
        await AutoTts(EspeakConfig(voice="en-uss")).start()


async def test_it_is_down_while_one_of_both_is(tts: AutoTts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(tts._hibari.core), "errored", True)
    assert not tts.alive
    monkeypatch.undo()
    assert tts.alive
    monkeypatch.setattr(type(tts._espeak.core), "errored", True)
    assert not tts.alive
