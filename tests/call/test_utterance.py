"""Settling an utterance: its words, and what speaks for their being all."""

import asyncio
from contextlib import aclosing

import numpy as np
import pytest

from tests.support.scenario import Delays, Says, Scenario, play
from tests.support.scripted_opinions import ScriptedTurnModel
from voicepipe.audio import RATE, Pcm
from voicepipe.base.errors import EngineStalled
from voicepipe.call.utterance import LONGEST, RecogniserWait, Utterance
from voicepipe.config import LadderConfig
from voicepipe.conversation.timing import TurnRecord
from voicepipe.engines.base import Hypothesis
from voicepipe.languages.written_language import LikelyLanguage
from voicepipe.turn.endpoint import Evidence
from voicepipe.turn.patience import Patience
from voicepipe.turn.pitch import KEPT_HOPS

GUESS, FIRST_PASS, FINAL = "do you have a", "do you have a table", "do you have a cable"


class Stream:
    """Tells the words of its first pass before the final ones."""

    def __init__(self, final: str) -> None:
        self.utterance = Utterance("item", 0, 0, 0.0, self, TurnRecord("turn"), asyncio.create_task)
        self._final = final

    def feed(self, pcm: Pcm) -> None: ...

    async def settle(self) -> Hypothesis:
        await asyncio.sleep(0.05)
        self.utterance.take_partial(FIRST_PASS)
        await asyncio.sleep(0.05)
        return Hypothesis(self._final)

    async def finish(self) -> Hypothesis:
        return await self.settle()

    def cancel(self) -> None: ...


async def first(utterance: Utterance) -> Evidence:
    """What is known as soon as the words are."""
    async with aclosing(utterance.settle()) as known:
        return await anext(known)


async def test_the_same_words_written_otherwise_are_no_others() -> None:
    utterance = Stream(FINAL).utterance
    assert utterance.take_partial("At seven thirty")[1]
    assert not utterance.take_partial("at 7:30.")[1] and not utterance.take_partial("At 730,")[1]
    assert utterance.take_partial("at 7:40")[1]


async def test_whatever_fails_beside_the_recogniser_costs_nobody_the_words() -> None:
    class Broken:
        def feed(self, pcm: Pcm) -> None: ...

        async def complete(self) -> float:
            raise ZeroDivisionError("no engine should raise this")

    utterance = Stream(FINAL).utterance
    utterance.voice = Broken()
    async with asyncio.TaskGroup() as group:  # As a call's: a task that fails would end it.
        utterance.spawn = group.create_task
        evidence = await first(utterance)
    assert (evidence.text, evidence.voice) == (FINAL, None)


@pytest.mark.virtual_time
async def test_what_is_judged_more_slowly_counts_when_it_is() -> None:
    """The words are not held up by it."""
    clock = asyncio.get_running_loop().time

    class Slow:
        def feed(self, pcm: Pcm) -> None: ...

        async def complete(self) -> float:
            await asyncio.sleep(0.3)
            return 0.2

    utterance = Stream(FIRST_PASS).utterance
    utterance.voice = Slow()
    utterance.take_partial(GUESS)
    began = clock()
    known = [(round(clock() - began, 2), each.voice) async for each in utterance.settle()]
    assert known == [(0.13, None), (0.3, 0.2)]


class Hung(Stream):
    """Told some words once, and never gives the final ones."""

    async def settle(self) -> Hypothesis:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.virtual_time
@pytest.mark.parametrize(("until", "stands_in"), [(2 * RATE, FINAL), (RATE, "")])
async def test_a_recogniser_that_hangs_is_given_up_by_what_it_mostly_takes(until: int, stands_in: str) -> None:
    """The words of the partial stand in where they are all that was said; a beginning is not answered as if it were."""
    clock = asyncio.get_running_loop().time
    patience = Patience()
    for _ in range(9):
        patience.took(100)
    utterance = Hung(FINAL).utterance
    utterance.waits, utterance.began, utterance.end = RecogniserWait(patience, LadderConfig(), clock), clock(), 2 * RATE
    utterance.take_partial(FINAL, until)
    utterance.partial_spoken = LikelyLanguage("fr", 0.9)
    began = clock()
    with pytest.raises(EngineStalled) as stalled:
        await first(utterance)
    assert clock() - began == pytest.approx(1.4) and utterance.stands_in(stalled.value) == stands_in
    began, utterance.record = clock(), TurnRecord("turn")
    if stands_in:
        await utterance.finish()
    else:
        with pytest.raises(EngineStalled):
            await utterance.finish()
    assert clock() - began < 2 and utterance.text == stands_in, "a commit, or keys, do not wait for ever either"
    assert utterance.spoken.tag == "fr", "as the words that stand in"


@pytest.mark.virtual_time
async def test_sound_that_came_at_once_may_take_the_time_that_it_lasts() -> None:
    clock = asyncio.get_running_loop().time
    utterance = Hung(FINAL).utterance
    utterance.waits, utterance.began = RecogniserWait(None, LadderConfig(), clock), clock()
    utterance.hear(np.zeros(60 * RATE, np.int16))
    began = clock()
    with pytest.raises(EngineStalled):
        await utterance.finish()
    assert clock() - began == pytest.approx(65)


def test_patience_is_learnt_and_bounded() -> None:
    patience = Patience()
    assert patience.ms(1400, 5000) == 5000, "nothing is known"
    for _ in range(9):
        patience.took(50)
    assert patience.ms(1400, 5000) == 1400
    for _ in range(5):
        patience.took(800)
    assert patience.ms(1400, 5000) == 3200, "a small machine's recogniser is waited for"


@pytest.mark.virtual_time
async def test_a_recogniser_that_has_become_slower_is_found_out() -> None:
    patience = Patience()
    for _ in range(9):
        patience.took(50)
    waits = RecogniserWait(patience, LadderConfig(words_ms=1000, fallback_ms=60_000), asyncio.get_running_loop().time)
    for _ in range(5):
        with pytest.raises(EngineStalled):
            await waits.for_words(asyncio.Event().wait(), 0.0)
    assert patience.ms(0, 60_000) == 4000, "a wait in vain counts as what it took at least, as any other"


async def test_a_stream_that_is_left_as_the_utterance_ends_is_over() -> None:
    """Its task never runs: the stream would keep a decoder, or a slot, for ever."""

    class Left(Stream):
        over = False

        def __init__(self) -> None:
            streams.append(self)

        def cancel(self) -> None:
            self.over = True

    streams: list[Left] = []
    utterance = Utterance("item", 0, 0, 0.0, Left(), TurnRecord("turn"), asyncio.create_task, Left)
    utterance.hear(np.ones(LONGEST, np.int16))
    utterance.hear(np.ones(RATE, np.int16))
    utterance.cancel()
    await asyncio.sleep(0.01)
    assert [stream.over for stream in streams] == [True, True]


@pytest.mark.virtual_time
async def test_a_quarter_of_an_hour_of_voice_keeps_no_more_than_minutes_of_it() -> None:
    """A radio beside the telephone: what recognisers keep grows with what one stream of theirs has heard."""

    class Keeps:
        def __init__(self) -> None:
            streams.append(self)
            self.samples = 0

        def feed(self, pcm: Pcm) -> None:
            self.samples += pcm.size

        async def settle(self) -> Hypothesis:
            return Hypothesis(f"w{streams.index(self)}")

        finish = settle

        def cancel(self) -> None:
            self.samples = 0

    streams: list[Keeps] = []
    utterance = Utterance("item", 0, 0, 0.0, Keeps(), TurnRecord("turn"), asyncio.create_task, Keeps)
    block, most = np.ones(RATE, np.int16), 0
    for second in range(900):
        utterance.hear(block)
        utterance.take_partial(f"w{len(streams) - 1}", second * RATE)
        await asyncio.sleep(0)
        most = max(most, sum(stream.samples for stream in streams))
    assert most <= LONGEST + RATE and len(utterance.pitch._octaves) <= KEPT_HOPS
    evidence = await first(utterance)
    assert evidence.text.split() == [f"w{n}" for n in range(len(streams))] == utterance.partial.split(), (
        "no word is lost"
    )


@pytest.mark.virtual_time
async def test_once_a_turn_is_over_nobody_is_asked_any_more_whether_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model would compute beside the one that answers, and for nothing."""
    asked, given_up = [], []
    complete = ScriptedTurnModel.complete

    async def slowly(model: ScriptedTurnModel) -> float:
        asked.append(model)
        try:
            return await complete(model)
        except asyncio.CancelledError:
            given_up.append(model)
            raise

    monkeypatch.setattr(ScriptedTurnModel, "complete", slowly)
    question = "what are your opening hours"
    recording = await play(
        Scenario(about="", hears=[question], says=[Says(500, 1400)], length_ms=8000, voice_complete=0.9,
                 delays=Delays(voice_complete_ms=4000), replies={question: "From noon to ten."})
    )  # fmt: skip
    assert "agent (completed): From noon to ten." in recording.story
    assert len(asked) == len(given_up) > 0
