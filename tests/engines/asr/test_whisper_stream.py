"""One utterance's way through many passes. The model is a stand-in that hears a word in each 400 ms of voice."""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.engines.contract import tone
from voicepipe.audio import RATE
from voicepipe.base.errors import EngineError
from voicepipe.engines.asr.whisper import GAP, LONG, WhisperStream
from voicepipe.engines.asr.whisper_language import PassageLanguage
from voicepipe.engines.asr.whisper_model import LONGEST, Passage, WhisperReading
from voicepipe.engines.asr.whisper_schedule import Passes
from voicepipe.engines.asr.whisper_words import WhisperWord
from voicepipe.engines.base import AsrHints, Hypothesis

pytestmark = pytest.mark.virtual_time
BLOCK, EVERY, WORD = 320, RATE // 2, 2 * RATE // 5
PASS_S = 0.05


class FakeModel:
    """Word n is "wn,", and its sound is as loud as to be told by it; the last word of a passage is never sure."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self.word = " w{},"
        self.fails = False
        self.takes_s: list[float] = []
        """The next passes; else PASS_S."""

    def ask(self, read: Callable[[], list[WhisperReading]], *, within_s: float) -> "asyncio.Future[Any]":
        takes_s = self.takes_s.pop(0) if self.takes_s else PASS_S

        async def run() -> list[WhisperReading]:
            await asyncio.sleep(takes_s)
            if self.fails:
                raise RuntimeError("no memory")
            return read()

        return asyncio.ensure_future(run())

    def read(self, passages: list[Passage]) -> list[WhisperReading]:
        if not any(passage.wanted is None or passage.wanted() for passage in passages):
            return []
        self.passages += passages
        return [self._read(passage) for passage in passages]

    def _read(self, passage: Passage) -> WhisperReading:
        pcm = passage.pcm[: passage.end]
        heard = [round(int(np.abs(pcm[at : at + WORD]).max()) / 200) for at in range(0, pcm.size, WORD)]
        cut = pcm.size % WORD
        words = [WhisperWord(self.word.format(n), (n, 0)) for n in heard[: len(heard) - bool(cut)]]
        ends = tuple((n + 1) * WORD for n in range(len(words)))
        if cut:
            words.append(WhisperWord(f" perhaps{cut}", (1000 + cut,)))
            ends = (*ends, pcm.size)
        return WhisperReading(tuple(words), ends if passage.timed else (), PassageLanguage("en", sure=True))


def spoken(words: int, first: int = 10) -> Any:
    """Word n is a square wave of height 200 * n."""
    square = np.where(np.arange(WORD) // 40 % 2, 1, -1)
    return np.concatenate([square * 200 * (first + n) for n in range(words)]).astype(np.int16)


def quiet(samples: int) -> Any:
    return np.zeros(samples, np.int16)


def passes_of(model: FakeModel, passes: int = 1) -> Passes:
    clock = asyncio.get_running_loop().time
    return Passes(model, model.read, 8, clock, Passage(quiet(0)), passes=passes)  # type: ignore[arg-type]


def opened(model: FakeModel, passes: int = 1) -> tuple[WhisperStream, list[Hypothesis]]:
    partials: list[Hypothesis] = []
    return WhisperStream(passes_of(model, passes), partials.append, "en", EVERY), partials


async def say(stream: WhisperStream, pcm: Any) -> None:
    for at in range(0, pcm.size, BLOCK):
        stream.feed(pcm[at : at + BLOCK])
        await asyncio.sleep(0.02)


async def test_a_voice_without_pause_is_read_now_and_then() -> None:
    model = FakeModel()
    stream, partials = opened(model)
    await say(stream, spoken(5))
    assert [partial.text for partial in partials] == [
        "w10, perhaps1600",
        "w10, w11, perhaps3200",
        "w10, w11, w12, perhaps4800",
    ]
    assert await stream.settle() == Hypothesis("w10, w11, w12, w13, w14,", 5 * WORD)
    stream.cancel()


async def test_it_is_read_twice_as_often_for_tools_that_only_read() -> None:
    model, partials = FakeModel(), list[Hypothesis]()
    stream = WhisperStream(passes_of(model), partials.append, "en", EVERY, AsrHints(eager=True))
    await say(stream, spoken(5))
    # Partials come in blocks: every 260 ms.
    assert [partial.until for partial in partials] == [13 * BLOCK * n for n in range(1, len(partials) + 1)]
    assert len(partials) >= 6
    stream.cancel()


async def test_the_pass_for_the_final_words_begins_at_the_gap() -> None:
    """Before anybody asks for them."""
    model = FakeModel()
    stream, partials = opened(model)
    await say(stream, spoken(1))
    await say(stream, quiet(GAP - BLOCK))
    assert not model.passages
    await say(stream, quiet(BLOCK))
    began = asyncio.get_running_loop().time()
    await say(stream, quiet(BLOCK))
    assert await stream.settle() == Hypothesis("w10,", WORD + GAP + BLOCK)
    assert asyncio.get_running_loop().time() - began == pytest.approx(PASS_S - 0.02)
    assert [partial.text for partial in partials] == ["w10,"] and len(model.passages) == 1


async def test_a_gap_whose_pass_has_not_begun_when_the_voice_is_back_is_not_read() -> None:
    model = FakeModel()
    passes = passes_of(model)
    busy, stream = (WhisperStream(passes, lambda partial: None, "en", EVERY) for _ in range(2))
    await say(stream, spoken(1))
    busy.feed(spoken(2))
    await asyncio.sleep(0)
    await say(stream, quiet(GAP))
    stream.feed(spoken(1, first=11)[:BLOCK])
    await asyncio.sleep(1)
    assert len(model.passages) == 1


async def gaps(stream: WhisperStream, said: int = 10 * BLOCK) -> None:
    """A word and a gap, more voice and a gap."""
    await say(stream, spoken(1))
    await say(stream, quiet(GAP))
    await say(stream, spoken(1, first=11)[:said])
    await say(stream, quiet(GAP))


async def test_a_gap_that_was_inside_a_word_is_not_read_to_its_end() -> None:
    model = FakeModel()
    stream, partials = opened(model, passes=2)
    await gaps(stream)
    await say(stream, spoken(1, first=11)[: 10 * BLOCK])
    assert [partial.text for partial in partials] == ["w10,"], "the first one tells of an interruption: it is read"
    assert len(model.passages) == 1
    await say(stream, quiet(3 * BLOCK))
    await stream.settle()
    assert len(model.passages) == 2
    stream.cancel()


async def test_a_gap_whose_words_somebody_waits_for_is_read_also_when_the_voice_is_back() -> None:
    model = FakeModel()
    stream, _ = opened(model, passes=2)
    await gaps(stream)
    gap = stream._sound.fed
    settling = asyncio.ensure_future(stream.settle())
    await asyncio.sleep(0)
    await say(stream, spoken(1, first=11)[: 5 * BLOCK])
    assert settling.done() and model.passages[1].fed == gap
    stream.cancel()


async def test_a_pass_that_a_later_one_overtakes_is_not_read_to_its_end() -> None:
    model = FakeModel()
    stream, _ = opened(model, passes=2)
    await say(stream, spoken(1))
    await say(stream, quiet(GAP + 3 * BLOCK))
    model.takes_s = [0.2]
    await say(stream, spoken(2, first=11)[: EVERY + BLOCK])
    await say(stream, quiet(GAP))
    await say(stream, quiet(15 * BLOCK))
    assert len(model.passages) == 2, "at the two gaps: the pass for partials took longer than the second"
    stream.cancel()


async def test_a_pass_of_an_utterance_that_is_over_is_not_read_to_its_end() -> None:
    model = FakeModel()
    stream, _ = opened(model)
    await say(stream, spoken(1))
    await say(stream, quiet(GAP))
    stream.cancel()
    await asyncio.sleep(1)
    assert not model.passages


async def test_digits_that_are_dictated_are_read_with_a_wide_window() -> None:
    model = FakeModel()
    model.word = " {},"
    stream, partials = opened(model)
    await say(stream, spoken(4))
    await say(stream, quiet(GAP + 4 * BLOCK))
    assert await stream.settle() == Hypothesis("10, 11, 12, 13,", 4 * WORD + GAP + 4 * BLOCK)
    assert [passage.wide for passage in model.passages] == [False, False, False, True]
    assert partials[-1].text == "10, 11, 12, 13,"
    stream.cancel()


async def test_a_pass_that_began_earlier_and_ends_later_is_forgotten() -> None:
    model = FakeModel()
    stream, partials = opened(model, passes=2)
    model.takes_s = [1.0]
    stream.feed(spoken(2))
    stream.feed(spoken(1, first=12))
    assert (await stream.settle()).text == "w10, w11, w12,"
    await asyncio.sleep(2)
    assert partials[-1].text == (await stream.finish()).text == "w10, w11, w12,"


async def test_a_pass_that_has_heard_everything_is_not_repeated_for_settling() -> None:
    model = FakeModel()
    stream, _ = opened(model)
    stream.feed(spoken(2))
    began = asyncio.get_running_loop().time()
    await asyncio.sleep(PASS_S / 2)
    stream.feed(np.zeros(BLOCK, np.int16))
    assert (await stream.settle()).text == "w10, w11,"
    assert asyncio.get_running_loop().time() - began == pytest.approx(PASS_S)
    await asyncio.sleep(1)
    assert len(model.passages) == 1
    assert (await stream.finish()).until == 2 * WORD + BLOCK


async def test_a_voice_that_comes_back_belongs_to_the_same_words() -> None:
    model = FakeModel()
    stream, _ = opened(model)
    stream.feed(spoken(2))
    await stream.settle()
    stream.feed(np.zeros(BLOCK, np.int16))
    stream.feed(spoken(2, first=12)[: WORD - BLOCK])
    stream.feed(spoken(2, first=13))
    final = await stream.finish()
    assert final.text.startswith("w10, w11,") and final.until == 5 * WORD
    assert len(model.passages) == 2


async def test_the_sound_of_words_that_stand_is_dropped_and_the_text_is_whole() -> None:
    model = FakeModel()
    stream, partials = opened(model)
    await say(stream, spoken(80))
    assert (await stream.finish()).text == " ".join(f"w{10 + n}," for n in range(80))
    assert max(passage.pcm.size for passage in model.passages) < LONG + 2 * EVERY
    heard = [partial.text.split(" perhaps")[0] for partial in partials]
    assert all(after.startswith(before) for before, after in zip(heard, heard[1:], strict=False))


async def test_a_recording_that_comes_at_once_is_read_window_by_window() -> None:
    model = FakeModel()
    stream, _ = opened(model)
    stream.feed(spoken(140))
    final = await stream.finish()
    assert final == Hypothesis(" ".join(f"w{10 + n}," for n in range(140)), 140 * WORD)
    assert [passage.pcm.size for passage in model.passages][:2] == [LONGEST, LONGEST]
    assert len(model.passages) == 3


async def test_noise_without_words_does_not_pile_up() -> None:
    model = FakeModel()
    model._read = lambda passage: WhisperReading((), (), PassageLanguage("en", sure=True))  # type: ignore[method-assign]
    stream, partials = opened(model)
    for _ in range(90):
        stream.feed(tone(1.0))
        await asyncio.sleep(1)
    assert (await stream.finish()).text == "" and not partials
    assert max(passage.pcm.size for passage in model.passages) <= LONGEST


async def test_a_partial_that_fails_is_missed_by_nobody_and_a_settle_says_so() -> None:
    model = FakeModel()
    stream, partials = opened(model)
    model.fails = True
    stream.feed(spoken(2))
    await asyncio.sleep(1)
    with pytest.raises(EngineError, match="no memory"):
        await stream.settle()
    model.fails = False
    assert (await stream.finish()).text == "w10, w11," and partials == []


async def test_a_call_that_fails_over_its_partial_is_no_matter_of_the_others() -> None:
    model, broken = FakeModel(), []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: broken.append(context["exception"]))
    passes = passes_of(model)

    def fail(partial: Hypothesis) -> None:
        raise ZeroDivisionError

    first = WhisperStream(passes, fail, "en", EVERY)
    other = WhisperStream(passes, lambda partial: None, "en", EVERY)
    for stream in (first, other):
        stream.feed(spoken(2))
    assert (await other.finish()).text == (await first.finish()).text == "w10, w11,"
    assert [type(error) for error in broken] == [ZeroDivisionError]


async def test_cancelling_wakes_who_waits() -> None:
    stream, _ = opened(FakeModel())
    stream.feed(spoken(1))
    waiting = asyncio.create_task(stream.settle())
    await asyncio.sleep(0)
    stream.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled() and not stream._waiting


async def test_passes_whose_words_were_not_the_last_ones_are_counted() -> None:
    model = FakeModel()
    stream, _ = opened(model)
    for first in (10, 11, 12):
        await say(stream, spoken(1, first))
        await say(stream, quiet(4 * BLOCK))
    assert (await stream.finish()).text.startswith("w10,")
    figures = stream._passes.figures()
    assert figures and (figures.begun, figures.wasted) == (3, 2)
