"""Calls on engines, in virtual time: when they ask for what, and what is timed."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.bench.instant import SOUND, InstantAsr, InstantLlm, InstantStream, InstantTts, playing
from tests.support.virtual_time import VirtualTimeLoop
from voicepipe.base.errors import EngineBusy, EngineError
from voicepipe.bench import results
from voicepipe.bench.load import LATER, TRAFFIC
from voicepipe.bench.play import PlayedLoad, play
from voicepipe.bench.results import FiguresResult
from voicepipe.engines.base import NO_HINTS, AsrHints, Delta, OnPartial, Prompt, Speech


def load(calls: int, seconds: float, *, gaps: bool = True) -> PlayedLoad:
    return PlayedLoad(calls, seconds, seed=1, gaps=gaps, sound=SOUND)


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_run_times_every_stage_of_every_turn_and_the_clock() -> None:
    asr, llm, tts = InstantAsr(), InstantLlm(), InstantTts()
    samples = await play(playing(asr, llm, tts), load(2, 60.0))
    assert samples.turns >= 10 and samples.unanswered == 0
    assert set(samples.times) == {*results.NAMES}
    assert {len(samples.times[name]) for name in (results.LLM_CHUNK, results.COMPUTE)} == {samples.turns}
    assert len(samples.times[results.ASR_FINAL]) == samples.turns + llm.guesses
    assert len(samples.times[results.TTS_LATER]) == LATER * samples.turns
    assert len(samples.times[results.CLOCK]) == pytest.approx(2 * 60 * 50, rel=0.05)
    assert set(asr.fed) == {320}
    assert set(samples.times[results.ASR_BEHIND]) <= {0.0, 20.0, 40.0}
    firsts = [text for text, first in tts.phrases if first]
    assert {len(text.split()) for text in firsts} == {TRAFFIC.phrase.tokens}


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_without_idle_gaps_a_call_has_more_turns() -> None:
    real, cut = [await play(playing(tts=InstantTts()), load(1, 60.0, gaps=gaps)) for gaps in (True, False)]
    assert 6 <= real.turns < cut.turns


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_stage_by_itself_is_not_a_turn() -> None:
    for alone in (playing(asr=InstantAsr()), playing(llm=InstantLlm()), playing(tts=InstantTts())):
        samples = await play(alone, load(1, 3.0))
        assert samples.turns and not samples.unanswered
        assert results.COMPUTE not in samples.times


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_what_an_engine_raises_is_heard_at_once() -> None:
    class Broken(InstantTts):
        async def speak(
            self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
        ) -> AsyncGenerator[Speech, None]:
            raise RuntimeError("out of memory")
            yield

    async with asyncio.timeout(30):
        with pytest.raises(RuntimeError, match="out of memory"):
            await play(playing(tts=Broken()), load(1, 1000.0))


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_recogniser_that_takes_no_sound_ends_the_run() -> None:
    class Deaf(InstantAsr):
        def stream(self, on_partial: OnPartial, hints: AsrHints = NO_HINTS) -> InstantStream:
            raise EngineError("no model")

    with pytest.raises(EngineError, match="no model"):
        await play(playing(asr=Deaf()), load(1, 1000.0))


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_turn_for_which_an_engine_has_no_room_is_not_answered() -> None:
    class Busy(InstantLlm):
        async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
            raise EngineBusy("admit fewer calls")
            yield

    samples = await play(playing(InstantAsr(), Busy(), InstantTts()), load(1, 30.0))
    assert samples.turns == samples.unanswered > 1


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_turn_that_gets_no_sound_is_not_answered_and_not_in_time() -> None:
    class Mute(InstantTts):
        async def speak(
            self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
        ) -> AsyncGenerator[Speech, None]:
            return
            yield

    samples = await play(playing(InstantAsr(), InstantLlm(), Mute()), load(1, 3.0))
    assert samples.turns == samples.unanswered == 1
    assert FiguresResult(1, True, [samples]).in_time(300.0) is False


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_what_holds_up_the_loop_is_seen_by_the_clock() -> None:
    class Blocking(InstantTts):
        async def speak(
            self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
        ) -> AsyncGenerator[Speech, None]:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualTimeLoop)
            loop.stand_still(0.15)
            yield Speech(SOUND)

    samples = await play(playing(tts=Blocking()), load(1, 30.0))
    held_up = [each for each in samples.times[results.CLOCK] if each > 50]
    assert held_up and max(held_up) < 310  # a first phrase and a later one
    late = samples.figure(results.CLOCK)
    assert late and late.p50 < 1
