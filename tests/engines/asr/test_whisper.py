"""`whisper` on a checkpoint of the real architecture whose weights are random: it says the same, whatever it hears."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from latency_probes.components.random_whisper import make_whisper
from tests.engines.contract import AsrContract, tone
from tests.support.waiting import until
from voicepipe.audio import RATE
from voicepipe.base.errors import EngineDead, EngineError, EngineMissing
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.asr.whisper import WhisperAsr
from voicepipe.engines.asr.whisper_model import LONGEST, LoadedWhisper, Passage
from voicepipe.engines.asr.whisper_schedule import PassSchedule
from voicepipe.engines.base import Asr, AsrHints, CanBreak, Hypothesis

pytestmark = pytest.mark.engine
SAYS = "What are your opening hours?"
BLOCK = 320


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_whisper(tmp_path_factory.mktemp("whisper"), SAYS)


@pytest.fixture(scope="module", name="german")
def _german(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_whisper(tmp_path_factory.mktemp("german"), "Wann haben Sie auf?", multilingual=True, language="de")


@pytest.fixture(name="asr")
async def _asr(folder: Path) -> AsyncIterator[WhisperAsr]:
    asr = WhisperAsr(WhisperConfig(model=str(folder)))
    await asr.start()
    yield asr
    await asr.close()


class TestWhisperAsr(AsrContract):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def model(cls, folder: Path) -> None:
        cls.folder = folder

    folder: Path

    @classmethod
    def factory(cls) -> Asr:
        return WhisperAsr(WhisperConfig(model=str(cls.folder)))


def ignore(partial: Hypothesis) -> None:
    pass


async def test_words_come_as_partials_and_settle(asr: WhisperAsr) -> None:
    partials: list[Hypothesis] = []
    heard = asyncio.Event()

    def hear(partial: Hypothesis) -> None:
        partials.append(partial)
        heard.set()

    stream = asr.stream(hear)
    for at in range(0, RATE, BLOCK):
        stream.feed(tone(1.0)[at : at + BLOCK])
        await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await heard.wait()
    settled = await stream.settle()
    assert (settled.text, settled.until, settled.lags) == (SAYS, RATE, False)
    assert settled.full_stop == pytest.approx(1.0), "a question mark ends a sentence, too"
    assert partials[0].text == SAYS and 0 < partials[0].until <= RATE
    assert await stream.finish() == settled


async def test_calls_are_read_together_as_on_a_gpu(asr: WhisperAsr, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    passes = asr.core.queue
    read = passes._read
    monkeypatch.setattr(passes, "_schedule", PassSchedule(batch=8))
    monkeypatch.setattr(passes, "_read", lambda given: batches.append(len(given)) or read(given))  # type: ignore[func-returns-value]
    streams = [asr.stream(ignore) for _ in range(5)]
    for stream in streams:
        stream.feed(tone(0.4))
    finals = await asyncio.gather(*(stream.finish() for stream in streams))
    assert [final.text for final in finals] == [SAYS] * 5
    assert batches == [1, 4]


async def test_silence_does_not_reach_the_model(asr: WhisperAsr, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = asr.core.queue
    monkeypatch.setattr(passes, "_read", lambda given: pytest.fail("it was read"))
    crack = np.concatenate([np.zeros(RATE, np.int16), tone(0.05), np.zeros(RATE, np.int16)])
    for sound in (np.zeros(3 * RATE, np.int16), np.random.default_rng(0).normal(0, 30, RATE).astype(np.int16), crack):
        stream = asr.stream(ignore)
        stream.feed(sound)
        assert await stream.finish() == Hypothesis("", sound.size)


async def test_silence_after_settling_is_not_read(asr: WhisperAsr, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = asr.stream(ignore)
    stream.feed(tone(1.0))
    assert (await stream.settle()).text == SAYS
    passes = asr.core.queue
    monkeypatch.setattr(passes, "_read", lambda given: pytest.fail("it was read"))
    stream.feed(np.random.default_rng(0).normal(0, 30, RATE).astype(np.int16))
    finished = await stream.finish()
    assert (finished.text, finished.until) == (SAYS, 2 * RATE)


async def test_a_settle_that_is_cancelled_is_not_read(asr: WhisperAsr, monkeypatch: pytest.MonkeyPatch) -> None:
    """The voice came back before its turn came."""
    monkeypatch.setattr(asr.core.queue, "_schedule", PassSchedule(batch=1))
    busy, stream = asr.stream(ignore), asr.stream(ignore)
    for each in (busy, stream):
        each.feed(tone(0.4))
    first, second = asyncio.create_task(busy.settle()), asyncio.create_task(stream.settle())
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([first, second])
    assert not asr.core.queue._schedule.next()
    assert stream._sound.read == 0
    assert (await stream.finish()).text == SAYS


async def test_minutes_of_sound_are_read_a_window_at_a_time(asr: WhisperAsr) -> None:
    stream = asr.stream(ignore)
    for _ in range(75):
        stream.feed(tone(1.0))
    final = await stream.finish()
    assert final.until == 75 * RATE
    assert 1 < final.text.count("What are") < 10
    assert stream._sound.end - stream._sound.start < LONGEST


async def test_the_language_is_fixed_or_found(german: Path) -> None:
    for detect, language, found in ((False, "fr-CA", "fr"), (True, "fr", "de"), (False, "tlh", "de")):
        asr = WhisperAsr(WhisperConfig(model=str(german), detect_language=detect))
        await asr.start()
        stream = asr.stream(ignore, AsrHints(language))
        stream.feed(tone(1.0))
        assert (await stream.finish()).text == "Wann haben Sie auf?"
        assert stream._language == found
        await asr.close()


def test_a_passage_tells_when_words_end(folder: Path) -> None:
    model = LoadedWhisper(WhisperConfig(model=str(folder)))
    (whole,) = model.read([Passage(tone(2.0), timed=True)])
    assert [word.text for word in whole.words] == [" What", " are", " your", " opening", " hours?"]
    assert list(whole.ends) == sorted(whole.ends) and whole.ends[-1] <= 2 * RATE
    assert [reading.words for reading in model.read([Passage(tone(2.0)), Passage(tone(0.2))])] == [whole.words] * 2


async def test_it_must_be_started_and_may_be_closed_while_somebody_waits(folder: Path) -> None:
    asr = WhisperAsr(WhisperConfig(model=str(folder)))
    with pytest.raises(EngineError):
        asr.stream(ignore)
    await asr.start()
    streams = [asr.stream(ignore) for _ in range(3)]
    for stream in streams:
        stream.feed(tone(0.4))
    waiting = [asyncio.create_task(stream.settle()) for stream in streams]
    await asyncio.sleep(0)
    await asr.close()
    async with asyncio.timeout(60):
        results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(result, (EngineError, Hypothesis)) for result in results)


async def test_a_model_that_fails_and_fails_is_loaded_again(
    asr: WhisperAsr, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(given: list[Passage]) -> None:
        raise RuntimeError("CUDA failed with error an illegal memory access was encountered")

    async def heard() -> str:
        stream = asr.stream(ignore)
        stream.feed(tone(0.4))
        return (await stream.finish()).text

    broken = asr.core.queue
    monkeypatch.setattr(broken, "_read", fail)
    for _ in range(3):
        assert asr.alive and isinstance(asr, CanBreak)
        with pytest.raises(EngineError, match="illegal memory access"):
            await heard()
    await until(lambda: broken._closed)
    with pytest.raises(EngineDead):
        await heard()
    await until(lambda: asr.alive)
    assert await heard() == SAYS
    assert "the recogniser ended" in caplog.text and "could not be cleared away" not in caplog.text


@pytest.mark.parametrize(
    ("said", "kind", "advice"),
    [
        ("Library libcublas.so.12 is not found or cannot be loaded", EngineMissing, "pip install nvidia-cublas-cu12"),
        ("CUDA failed with error out of memory", EngineError, "another `device`, or a smaller model"),
    ],
)
async def test_what_fails_while_warming_up_is_explained(
    folder: Path, monkeypatch: pytest.MonkeyPatch, said: str, kind: type[EngineError], advice: str
) -> None:
    def fail(model: LoadedWhisper, passages: list[Passage]) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(LoadedWhisper, "read", fail)
    asr = WhisperAsr(WhisperConfig(model=str(folder)))
    with pytest.raises(kind, match=advice):
        await asr.start()
    with pytest.raises(EngineError):
        asr.stream(ignore)


async def test_what_cannot_be_loaded_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineMissing, match=r"no model\.bin"):
        await WhisperAsr(WhisperConfig(model=str(tmp_path))).start()
    with pytest.raises(EngineMissing, match="voicepipe models pull"):
        await WhisperAsr(WhisperConfig(model="nobody/no-such-model")).start()
    with pytest.raises(EngineError, match="cannot be loaded"):
        await WhisperAsr(WhisperConfig(model=str(folder), device="cpu", compute_type="int3")).start()
    for name in ("model.bin", "config.json", "tokenizer.json", "vocabulary.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "preprocessor_config.json").write_text('{"feature_size": 128}')
    with pytest.raises(EngineError, match="80 mel bands, and the file says 128"):
        await WhisperAsr(WhisperConfig(model=str(tmp_path))).start()
