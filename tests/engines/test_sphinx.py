"""pocketsphinx: what it hears, and what becomes of calls into it that hang."""

import asyncio
import ctypes
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import psutil
import pytest

from tests.stopwatch import spent
from tests.waiting import until
from voicepipe.audio import RATE, Pcm, ms_to_samples
from voicepipe.audio.resample import Resampler
from voicepipe.engines import sphinx, sphinx_decoder
from voicepipe.engines.base import Hypothesis
from voicepipe.engines.espeak import EspeakTts
from voicepipe.engines.sphinx import SphinxAsr
from voicepipe.engines.sphinx_decoder import SphinxDecoder, never_heard
from voicepipe.engines.sphinx_language import SphinxLanguage
from voicepipe.engines.sphinx_recognition import BEGINNING_MOST, Recognition
from voicepipe.errors import EngineBusy, EngineDead, EngineError

pytestmark = pytest.mark.slow

PHRASES = ("what are your opening hours", "I'd like to book a table for two.", "is there any parking", "where are you")
LEAD, PAUSE = ms_to_samples(300), ms_to_samples(80)
BLOCK = 320
SENTENCE = "is there any parking"


async def speech(text: str) -> Pcm:
    """`text` by espeak-ng at 16 kHz, on a quiet line, between a lead-in and the silence at which it is settled."""
    tts = EspeakTts()
    await tts.start()
    resampler = Resampler(tts.rate, RATE)
    said = [resampler(piece.pcm) async for piece in tts.speak(text)]
    await tts.close()
    sound = np.concatenate([np.zeros(LEAD, np.int16), *said, resampler.flush(), np.zeros(PAUSE, np.int16)])
    noisy: Pcm = sound + np.random.default_rng(0).normal(0, 5, sound.size).astype(np.int16)
    return noisy


def ignore(partial: Hypothesis) -> None:
    pass


@pytest.fixture(scope="module", name="parking")
def _parking() -> Pcm:
    return asyncio.run(speech(SENTENCE))


@pytest.fixture(name="asr")
async def _asr() -> AsyncIterator[SphinxAsr]:
    asr = SphinxAsr(PHRASES, decoders=2)
    await asr.start()
    yield asr
    await asr.close()


def rss_mb() -> float:
    """Of this process, without what its allocator merely keeps."""
    ctypes.CDLL(None).malloc_trim(0)
    return psutil.Process().memory_info().rss / 2**20


@pytest.mark.engine
@pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc_trim")
def test_a_decoder_leaves_no_memory_behind() -> None:
    """A recogniser that is loaded again after it hung must not cost twice as much."""
    language = SphinxLanguage(PHRASES)
    SphinxDecoder(language).free()
    before = rss_mb()
    for number in range(4):
        decoder = SphinxDecoder(language)
        if number % 2:
            decoder.free()
        del decoder  # also where nobody is left who could have freed it
    for thread in threading.enumerate():
        if thread.name == "sphinx-free":
            thread.join()
    assert rss_mb() - before < 100, "one decoder has 100 MB; its language models alone were 37"


@pytest.mark.engine
async def test_a_decoder_that_is_forgotten_does_not_hold_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 50 ms, and those in use when a thread hangs are forgotten all at once."""
    frees: list[threading.Thread] = []
    free = sphinx_decoder._free

    def noted(*freed: Any) -> None:
        free(*freed)
        frees.append(threading.current_thread())

    monkeypatch.setattr(sphinx_decoder, "_free", noted)
    decoder = await asyncio.to_thread(SphinxDecoder, SphinxLanguage(PHRASES))
    del decoder
    await until(lambda: frees)
    assert threading.current_thread() not in frees


@pytest.mark.engine
async def test_words_come_as_partials_and_settle(asr: SphinxAsr, parking: Pcm) -> None:
    partials: list[Hypothesis] = []
    heard = asyncio.Event()

    def hear(partial: Hypothesis) -> None:
        partials.append(partial)
        heard.set()

    stream = asr.stream(hear)
    for at in range(0, parking.size, BLOCK):
        stream.feed(parking[at : at + BLOCK])
        await asyncio.sleep(0.005)
    async with asyncio.timeout(30):
        await heard.wait()
    settled = await stream.settle()
    assert settled.text == SENTENCE
    assert settled.until == parking.size
    assert settled.ends is not None and settled.ends > 0.1
    assert partials
    assert await stream.finish() == settled


@pytest.mark.engine
async def test_the_words_of_the_first_pass_are_told_before_the_best(asr: SphinxAsr, parking: Pcm) -> None:
    partials: list[Hypothesis] = []
    stream = asr.stream(partials.append)
    stream.feed(parking)
    settled = await stream.settle()
    assert [partial.until for partial in partials][-1] == settled.until == parking.size
    again = len(partials)
    assert (await stream.settle()).text == settled.text
    assert len(partials) == again, "the best words are there"
    stream.cancel()


@pytest.mark.engine
async def test_silence_after_settling_changes_nothing(asr: SphinxAsr, parking: Pcm) -> None:
    stream = asr.stream(ignore)
    stream.feed(parking)
    settled = await stream.settle()
    stream.feed(np.random.default_rng(1).normal(0, 5, RATE).astype(np.int16))
    began = time.perf_counter()
    later = await stream.finish()
    assert (later.text, later.ends) == (settled.text, settled.ends)
    assert time.perf_counter() - began < 1, "it takes 11 ms"


@pytest.mark.engine
async def test_the_voice_that_comes_back_belongs_to_the_same_words(asr: SphinxAsr, parking: Pcm) -> None:
    middle = LEAD + (parking.size - LEAD) // 2
    stream = asr.stream(ignore)
    stream.feed(parking[:middle])
    await stream.settle()
    stream.feed(parking[middle:])
    assert (await stream.finish()).text == SENTENCE


@pytest.mark.engine
async def test_an_unfinished_sentence_is_told_from_a_finished_one(asr: SphinxAsr, parking: Pcm) -> None:
    ends = []
    for sound in (parking, await speech("is there any")):
        stream = asr.stream(ignore)
        stream.feed(sound)
        ends.append((await stream.finish()).ends)
    assert ends[0] is not None and ends[1] is not None and ends[0] > 0.1 > 0.01 > ends[1]


@pytest.mark.engine
async def test_a_settle_that_is_cancelled_while_it_waits_loses_no_sound(asr: SphinxAsr, parking: Pcm) -> None:
    """The voice came back before a thread was free."""
    stream = asr.stream(ignore)
    for at in range(0, parking.size, BLOCK):
        stream.feed(parking[at : at + BLOCK])
        if at % (20 * BLOCK) == 0:
            settling = asyncio.ensure_future(stream.settle())
            await asyncio.sleep(0)
            settling.cancel()
    assert (await stream.finish()).text == SENTENCE


@pytest.mark.engine
async def test_the_words_so_far_of_a_first_syllable_begin_nothing(asr: SphinxAsr, parking: Pcm) -> None:
    """What the voice is like is told by half a second of it: it would stay as it was taken to be."""
    decoders = asr._life.core
    decoder = decoders._free.pop()
    inbox = deque([parking[: LEAD + ms_to_samples(250)]])
    recognition = Recognition(decoder, inbox)
    assert recognition.hear_out() is None
    inbox.append(parking[LEAD + ms_to_samples(250) :])
    assert recognition.hear_out() is not None and recognition.settle().text == SENTENCE
    recognition.close()
    decoders._free.append(decoder)


@pytest.mark.engine
async def test_nothing_is_told_once_the_end_was_asked_for(asr: SphinxAsr, parking: Pcm) -> None:
    """It would be taken for the next utterance's."""
    partials: list[Hypothesis] = []
    stream = asr.stream(partials.append)
    stream.feed(parking)
    assert (await stream.finish()).text == SENTENCE
    await asyncio.sleep(0.05)
    assert partials == []


def measured(monkeypatch: pytest.MonkeyPatch, method: str) -> list[int]:
    """The samples that decoders' `method` is given from now on, by call."""
    sizes: list[int] = []
    inner = getattr(SphinxDecoder, method)

    def outer(decoder: SphinxDecoder, pcm: Pcm, **kwargs: bool) -> None:
        sizes.append(pcm.size)
        inner(decoder, pcm, **kwargs)

    monkeypatch.setattr(SphinxDecoder, method, outer)
    return sizes


@pytest.mark.engine
@pytest.mark.parametrize("at_once", [False, True])
async def test_a_long_silence_after_the_words_is_not_decoded(
    asr: SphinxAsr, parking: Pcm, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    """A client that ends its turns itself may leave an utterance open for minutes, and send them in one message."""
    decoded, looked = measured(monkeypatch, "feed"), measured(monkeypatch, "start")
    stream = asr.stream(ignore)
    stream.feed(parking)
    assert (await stream.settle()).text == SENTENCE
    silence = [np.zeros(60 * RATE, np.int16)] if at_once else [np.zeros(RATE, np.int16)] * 60
    for pcm in [np.concatenate([*silence, parking])] if at_once else [*silence, parking]:
        stream.feed(pcm)
    final = await stream.finish()
    assert sum(decoded) < 4 * parking.size and max(looked) <= BEGINNING_MOST
    assert final.text == f"{SENTENCE} {SENTENCE}"
    assert final.until == 2 * parking.size + 60 * RATE


@pytest.mark.engine
async def test_sound_waits_for_a_decoder(parking: Pcm) -> None:
    asr = SphinxAsr(PHRASES, decoders=1)
    await asr.start()
    streams = [asr.stream(ignore) for _ in range(3)]
    for stream in streams:
        stream.feed(parking)
    streams[1].cancel()
    for stream in (streams[0], streams[2]):
        assert (await stream.finish()).text == SENTENCE
    await asr.close()


@pytest.mark.engine
async def test_who_waits_too_long_for_a_decoder_is_told(parking: Pcm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sphinx, "WAIT_S", 0.05)
    asr = SphinxAsr(PHRASES, decoders=1)
    await asr.start()
    first, second, third = (asr.stream(ignore) for _ in range(3))
    second.feed(parking)
    for ask in (second.settle, second.settle, third.finish):
        with pytest.raises(EngineBusy):
            await ask()
    waiting = asyncio.create_task(second.settle())
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert not asr._life.core._waiting
    assert (figures := asr._life.core.figures())
    assert (figures.waiting, figures.running, figures.begun, figures.refused) == (0, 1, 1, 3)
    first.feed(parking)
    assert (await first.finish()).text == SENTENCE
    last = asr.stream(ignore)
    last.feed(parking)
    monkeypatch.setattr(sphinx, "WAIT_S", 5.0)
    assert (await last.finish()).text == SENTENCE
    await asr.close()


@pytest.mark.engine
async def test_noise_does_not_break_a_decoder(asr: SphinxAsr, parking: Pcm) -> None:
    noise = np.random.default_rng(2)
    for level in (0, 1, 3000, 40000):
        stream = asr.stream(ignore)
        for size in noise.integers(1, 4000, 12):
            stream.feed(np.clip(noise.normal(0, level, size), -32768, 32767).astype(np.int16))
            if size % 3 == 0:
                await stream.settle()
        await stream.finish()
    stream = asr.stream(ignore)
    stream.feed(parking)
    assert (await stream.finish()).text == SENTENCE


async def test_it_must_be_started() -> None:
    with pytest.raises(EngineError):
        SphinxAsr().stream(ignore)


# --- hanging ----------------------------------------------------------------------------------------------------


@pytest.fixture(name="stuck")
def _stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """While it is set no call into pocketsphinx comes back."""
    stuck, real = threading.Event(), SphinxDecoder.feed

    def feed(decoder: SphinxDecoder, pcm: Pcm) -> None:
        while stuck.is_set():
            time.sleep(0.01)
        real(decoder, pcm)

    monkeypatch.setattr(SphinxDecoder, "feed", feed)
    yield stuck
    stuck.clear()


@pytest.mark.engine
async def test_decoders_that_hang_are_left_behind_and_others_hear(stuck: threading.Event, parking: Pcm) -> None:
    asr = SphinxAsr(PHRASES, decoders=2, stall_s=0.2)
    await asr.start()
    stuck.set()
    stream, waits = asr.stream(ignore), asr.stream(ignore)
    stream.feed(parking)
    assert asr.alive, "it has only just been asked"
    with pytest.raises(EngineDead):
        await stream.finish()
    assert not asr.alive
    stuck.clear()
    waits.feed(parking)
    with pytest.raises(EngineDead):
        await waits.finish()
    await until(lambda: asr.alive)
    again = asr.stream(ignore)
    again.feed(parking)
    assert (await again.finish()).text == SENTENCE
    await asr.close()


@pytest.mark.engine
async def test_a_hang_is_told_within_seconds_where_jobs_are_short(asr: SphinxAsr, parking: Pcm) -> None:
    """It once took 22 s, for every job was given the time to hear seconds of sound again."""
    stream = asr.stream(ignore)
    decoders = asr._life.core
    await stream._ready
    first = stream._piece_within_s(stream._ready.result())
    for at in range(0, parking.size, BLOCK):
        stream.feed(parking[at : at + BLOCK])
        await asyncio.sleep(0.005)
    await stream.settle()
    assert first == pytest.approx(12, abs=0.5), "nothing is known of this machine"
    for _ in range(9):
        decoders.took(0.05)
    recognition = stream._ready.result()
    assert stream._piece_within_s(recognition) < 6
    settled = stream._within_s(recognition)
    assert settled > decoders.stall_s + 5 * 1.2, "the voice may be back: all is heard once more"
    for _ in range(9):
        decoders.took(2)
    assert stream._piece_within_s(recognition) > 9, "a slow machine is healthy"
    for _ in range(9):
        decoders.took(60)
    assert stream._piece_within_s(recognition) < 13, "and never given more than is configured"
    stream.cancel()


@pytest.mark.engine
def test_what_a_caller_sounds_like_is_learned_at_little_cost(parking: Pcm) -> None:
    """It used to be decoded for that, which took as long as decoding it for its words: short answers were late."""
    decoder = SphinxDecoder(SphinxLanguage(()))

    def learned() -> None:
        decoder.start(parking)
        decoder.end()

    def decoded() -> None:
        decoder.start(parking[:0])
        decoder.feed(parking)
        decoder.end()

    assert spent(learned) < spent(decoded) / 2
    decoder.start(parking)
    decoder.feed(parking)
    decoder.end()
    assert "park" in decoder.words()
    decoder.free()


def test_words_without_a_pronunciation() -> None:
    """Which nobody would miss: the language model has them, the dictionary has not, and so they are never heard."""
    assert " of aioli, and never" in never_heard(
        ["A table with aioli, please.", "aioli and Burgundy", "I'd like gnocchi"]
    )


async def test_the_start_names_them(caplog: pytest.LogCaptureFixture) -> None:
    asr = SphinxAsr(["a pizza with aioli and rucola"], decoders=1)
    await asr.start()
    await asr.close()
    assert "pocketsphinx knows no pronunciation of aioli, rucola, and never hears it." in caplog.text


def test_a_vocabulary_is_heard_better() -> None:
    """Sentences that share words with what is said are enough."""
    asked = "the label on the box is wet"
    sound = asyncio.run(speech(asked))
    heard = []
    for vocabulary in ((), ("the label is missing", "my parcel is wet", "the box is wet")):
        decoder = SphinxDecoder(SphinxLanguage(vocabulary))
        decoder.start(sound[LEAD:])
        decoder.feed(sound)
        decoder.end()
        heard.append(decoder.words())
        decoder.free()
    assert heard[0] != asked
    assert heard[1] == asked
