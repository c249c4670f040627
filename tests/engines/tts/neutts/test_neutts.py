"""A NeuTTS whose vLLM and codec are stand-ins: what becomes of phrases, failures and hangs."""

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.engines.llm.vllm.test_core import FakeGuard, FakeLlm
from tests.support.waiting import until
from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.config.engine_config import NeuttsConfig, RecordedVoice
from voicepipe.engines.base import Speech
from voicepipe.engines.tts.neutts.neutts import NeuttsProcess, ReferenceVoice, VoiceParts
from voicepipe.engines.tts.neutts.prompt import Recording
from voicepipe.engines.tts.neutts.windows import Sound

HOP, RATE, SILENT = 480, 24_000, 9
RECORDED = Recording("", (1,) * 100, 3.0, 33)
TEXT = "A table for two, on Friday at seven."


class Llm(FakeLlm):
    """Says `says`, six codes at a time, to whoever asks; for ever, if nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.says: list[int] = [1] * 100
        self.reason = "stop"
        self.asked = self.closed = 0

    async def generate(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        self.asked += 1
        try:
            for at in range(0, len(self.says), 6):
                await asyncio.sleep(0)
                ends = at + 6 >= len(self.says)
                part = SimpleNamespace(token_ids=self.says[at : at + 6], finish_reason=self.reason if ends else None)
                yield SimpleNamespace(outputs=[part], finished=ends)
        finally:
            self.closed += 1


class Codec:
    """A code is as loud as its number says; SILENT is not."""

    rate, hop = RATE, HOP

    def __init__(self) -> None:
        self.fails = False
        self.go_on = threading.Event()
        self.go_on.set()

    def decode(self, windows: Sequence[Sequence[int]]) -> list[Sound]:
        assert self.go_on.wait(60)
        if self.fails:
            raise RuntimeError("CUDA error")
        wave = np.sin(np.arange(HOP) / 20).astype(np.float32)
        return [np.concatenate([wave * (0 if code == SILENT else 0.1 * code) for code in codes]) for codes in windows]


class Phonemizer:
    def phonemes(self, text: str, language: str) -> str:
        return "" if "unspeakable" in text else text


class Writer:
    ends = -1

    def written(self, voice: Recording, phonemes: str) -> list[int]:
        return [0] * len(phonemes)

    def codes(self, tokens: Sequence[int]) -> list[int]:
        return [token for token in tokens if token >= 0]


@pytest.fixture(autouse=True)
def _vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    exceptions, engine = ModuleType("vllm.exceptions"), ModuleType("vllm.v1.engine.exceptions")
    exceptions.GracefulHTTPError = type("Full", (Exception,), {})  # type: ignore[attr-defined]
    engine.EngineDeadError = RuntimeError  # type: ignore[attr-defined]
    for module in (*map(ModuleType, ("vllm", "vllm.v1", "vllm.v1.engine")), exceptions, engine):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(NeuttsProcess, "_request", lambda *args: (None, None))


@pytest.fixture
def voice() -> NeuttsProcess:
    parts = VoiceParts(Codec(), Phonemizer(), Writer(), {"anna": ReferenceVoice(RECORDED, "en-us", 1.0, 150)})  # type: ignore[arg-type]
    start = SimpleNamespace(family=list, guard=FakeGuard())
    config = NeuttsConfig(voices={"anna": RecordedVoice("a.wav", "a", "nobody, 2026")}, stall_s=1)
    return NeuttsProcess(config, (Llm(), parts), start)  # type: ignore[arg-type]


async def said(voice: NeuttsProcess, text: str = TEXT) -> list[Speech]:
    return [speech async for speech in voice.speak(text, "", 1.0, first=True)]


def llm(voice: NeuttsProcess) -> Llm:
    made: Llm = voice.llm
    return made


def codec(voice: NeuttsProcess) -> Codec:
    made: Codec = voice.parts.codec  # type: ignore[assignment]
    return made


async def test_a_phrase_comes_in_pieces_with_the_words_that_end_in_each(voice: NeuttsProcess) -> None:
    speech = await said(voice)
    assert [each.more for each in speech] == [True] * (len(speech) - 1) + [False]
    assert sum(each.pcm.size for each in speech) == pytest.approx(100 * HOP + 0.22 * RATE, abs=HOP)
    assert [word.text for each in speech for word in each.words] == TEXT.split()


async def test_what_is_long_silent_is_given_up_and_aborted_in_vllm(voice: NeuttsProcess) -> None:
    llm(voice).says = [1] * 60 + [SILENT] * 600
    speech = await said(voice)
    assert sum(each.pcm.size for each in speech) < 62 * HOP + 0.25 * RATE
    assert llm(voice).closed == 1 and not voice.errored


async def test_who_stops_listening_aborts_it(voice: NeuttsProcess) -> None:
    speaking = voice.speak(TEXT, "", 1.0, first=True)
    await anext(speaking)
    assert not llm(voice).closed
    await speaking.aclose()
    assert llm(voice).closed == 1


async def test_a_piece_that_cannot_be_spoken_does_not_leave_the_phrase_open(voice: NeuttsProcess) -> None:
    assert await said(voice, "unspeakable") == [] and not llm(voice).asked
    speech = await said(voice, f"{TEXT} " * 4 + "unspeakable " * 10)
    assert not speech[-1].more and all(each.more for each in speech[:-1])


async def test_a_codec_that_fails_and_fails_is_the_engines_end(voice: NeuttsProcess) -> None:
    codec(voice).fails = True
    for _ in range(3):
        assert not voice.errored
        with pytest.raises(EngineError, match="codec failed: RuntimeError"):
            await said(voice)
    await until(lambda: voice.errored)
    assert not voice.hung and llm(voice).closed == llm(voice).asked


@pytest.mark.parametrize(
    "reason, says, said_of_it", [("error", [1] * 100, "gave a reply up"), ("stop", [-5] * 9, "said nothing")]
)
async def test_a_model_that_says_nothing_and_fails_is_the_engines_end(
    voice: NeuttsProcess, reason: str, says: list[int], said_of_it: str
) -> None:
    llm(voice).reason, llm(voice).says = reason, says
    for _ in range(3):
        with pytest.raises(EngineError, match=said_of_it):
            await said(voice)
    await until(lambda: voice.errored)


async def test_one_failure_of_the_codec_is_not(voice: NeuttsProcess) -> None:
    codec(voice).fails = True
    with pytest.raises(EngineError):
        await said(voice)
    codec(voice).fails = False
    for _ in range(4):
        assert await said(voice)
    assert not voice.errored


async def test_a_codec_that_hangs_is_found_out_and_who_waits_is_told(voice: NeuttsProcess) -> None:
    hanging = codec(voice)
    hanging.go_on.clear()
    waiting = asyncio.create_task(said(voice))
    await until(lambda: voice.errored)
    assert voice.hung
    await voice.close()
    with pytest.raises(EngineDead):
        await waiting
    with pytest.raises(EngineDead):
        await said(voice)
    hanging.go_on.set()


async def test_a_closed_voice_gives_its_codec_back(voice: NeuttsProcess) -> None:
    """Whoever loads the next one still holds it, and a GPU has no room for two."""
    known = weakref.ref(codec(voice))
    assert await said(voice)
    await voice.close()
    gc.collect()
    assert known() is None
