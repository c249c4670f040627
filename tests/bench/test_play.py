"""Calls on engines, in virtual time: when they ask for what, and what is timed."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest

from tests.bench.instant import SOUND, Instant, InstantUtterance
from tests.support.virtual_time import VirtualTimeLoop
from voicepipe.base.errors import EngineBusy, EngineError
from voicepipe.bench import figures
from voicepipe.bench.figures import FiguresResult
from voicepipe.bench.load import LATER, TRAFFIC
from voicepipe.bench.play import PlayedEngines, PlayedLoad, play


def load(calls: int, seconds: float, *, gaps: bool = True) -> PlayedLoad:
    return PlayedLoad(calls, seconds, seed=1, gaps=gaps, sound=SOUND)


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_run_times_every_stage_of_every_turn_and_the_clock() -> None:
    instant = Instant()
    samples = await play(PlayedEngines(instant, instant, instant), load(2, 60.0))
    assert samples.turns >= 10 and samples.unanswered == 0
    assert set(samples.times) == {*figures.NAMES}
    assert {len(samples.times[name]) for name in (figures.LLM_CHUNK, figures.COMPUTE)} == {samples.turns}
    assert len(samples.times[figures.ASR_FINAL]) == samples.turns + instant.guesses
    assert len(samples.times[figures.TTS_LATER]) == LATER * samples.turns
    assert len(samples.times[figures.CLOCK]) == pytest.approx(2 * 60 * 50, rel=0.05)
    assert set(instant.fed) == {320}
    assert set(samples.times[figures.ASR_BEHIND]) <= {0.0, 20.0, 40.0}
    firsts = [text for text, first in instant.phrases if first]
    assert {len(text.split()) for text in firsts} == {TRAFFIC.phrase.tokens}


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_without_idle_gaps_a_call_has_more_turns() -> None:
    real, cut = [await play(PlayedEngines(tts=Instant()), load(1, 60.0, gaps=gaps)) for gaps in (True, False)]
    assert 6 <= real.turns < cut.turns


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_stage_by_itself_is_not_a_turn() -> None:
    for alone in (PlayedEngines(asr=Instant()), PlayedEngines(llm=Instant()), PlayedEngines(tts=Instant())):
        samples = await play(alone, load(1, 3.0))
        assert samples.turns and not samples.unanswered
        assert figures.COMPUTE not in samples.times


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_what_an_engine_raises_is_heard_at_once() -> None:
    class Broken(Instant):
        async def speak(self, call: int, text: str, *, first: bool) -> AsyncGenerator[None, None]:
            raise RuntimeError("out of memory")
            yield

    async with asyncio.timeout(30):
        with pytest.raises(RuntimeError, match="out of memory"):
            await play(PlayedEngines(tts=Broken()), load(1, 1000.0))


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_recogniser_that_takes_no_sound_ends_the_run() -> None:
    class Deaf(Instant):
        def listen(self, call: int, told: Callable[[int], None]) -> "InstantUtterance":
            raise EngineError("no model")

    with pytest.raises(EngineError, match="no model"):
        await play(PlayedEngines(asr=Deaf()), load(1, 1000.0))


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_turn_for_which_an_engine_has_no_room_is_not_answered() -> None:
    class Busy(Instant):
        async def reply(self, call: int, *, guess: bool) -> AsyncGenerator[str, None]:
            raise EngineBusy("admit fewer calls")
            yield

    samples = await play(PlayedEngines(Instant(), Busy(), Instant()), load(1, 30.0))
    assert samples.turns == samples.unanswered > 1


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_turn_that_gets_no_sound_is_not_answered_and_not_in_time() -> None:
    class Mute(Instant):
        async def speak(self, call: int, text: str, *, first: bool) -> AsyncGenerator[None, None]:
            return
            yield

    samples = await play(PlayedEngines(Instant(), Instant(), Mute()), load(1, 3.0))
    assert samples.turns == samples.unanswered == 1
    assert FiguresResult(1, True, [samples]).in_time(300.0) is False


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_what_holds_up_the_loop_is_seen_by_the_clock() -> None:
    class Blocking(Instant):
        async def speak(self, call: int, text: str, *, first: bool) -> AsyncGenerator[None, None]:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualTimeLoop)
            loop.stand_still(0.15)
            yield

    samples = await play(PlayedEngines(tts=Blocking()), load(1, 30.0))
    held_up = [each for each in samples.times[figures.CLOCK] if each > 50]
    assert held_up and max(held_up) < 310  # a first phrase and a later one
    late = samples.figure(figures.CLOCK)
    assert late and late.p50 < 1
