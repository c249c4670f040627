"""Kokoro's adapter, on a small graph of the real inputs and outputs: a stub, it hums a note for each phoneme.

The phonemes are those of the real kokoro-onnx.
"""

import asyncio
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.engines.contract import TtsContract, assert_same_speech, whole
from tests.support.waiting import until
from voicepipe.base.errors import EngineDead, EngineError, EngineMissing
from voicepipe.config import Config
from voicepipe.config.engine_config import EnginesConfig, KokoroConfig
from voicepipe.engines.base import CanBreak, Speech, Tts
from voicepipe.engines.hosting.failures import FAILURES
from voicepipe.engines.loader import choose
from voicepipe.engines.tts import kokoro
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.tts.kokoro import KokoroTts

pytestmark = pytest.mark.engine

FRAME = 600
"""Samples of one unit of duration, 25 ms: the real model's."""
TEXT = "We know all of the answers, Anna."


def stub(path: Path, *, tokens: str = "tokens", timed: bool = True) -> str:
    """Every token lasts round(3 / speed) frames; 0, which stands around them, is silent.

    tokens int64[1, n], style float[1, 256], speed float[1] -> audio float[samples], duration int64[n].
    """

    def constant(name: str, value: float | list[int]) -> onnx.NodeProto:
        if isinstance(value, list):
            return helper.make_node("Constant", [], [name], value_ints=value)
        return helper.make_node("Constant", [], [name], value_float=value)

    nodes = [
        constant("three", 3.0), constant("frame", float(FRAME)), constant("zero", [0]), constant("one", [1]),
        constant("low", 80.0), constant("step", 3.0), constant("radians", 2 * np.pi / 24_000), constant("volume", 0.3),
        helper.make_node("Squeeze", [tokens, "zero"], ["row"]),
        helper.make_node("Shape", ["row"], ["count"]),
        helper.make_node("Div", ["three", "speed"], ["slow"]),
        helper.make_node("Round", ["slow"], ["frames"]),
        helper.make_node("Expand", ["frames", "count"], ["each"]),
        helper.make_node("Cast", ["each"], ["duration"], to=TensorProto.INT64),
        # [n] -> [n, samples of each] -> [all samples]
        helper.make_node("Mul", ["frames", "frame"], ["long"]),
        helper.make_node("Cast", ["long"], ["samples"], to=TensorProto.INT64),
        helper.make_node("Concat", ["count", "samples"], ["square"], axis=0),
        helper.make_node("Cast", ["row"], ["height"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["height", "one"], ["column"]),
        helper.make_node("Expand", ["column", "square"], ["heights"]),
        constant("flat", [-1]),
        helper.make_node("Reshape", ["heights", "flat"], ["height_at"]),
        helper.make_node("Sign", ["height_at"], ["said"]),
        helper.make_node("Mul", ["height_at", "step"], ["above"]),
        helper.make_node("Add", ["above", "low"], ["hertz"]),
        helper.make_node("CumSum", ["hertz", "axis"], ["turns"]),
        helper.make_node("Mul", ["turns", "radians"], ["phase"]),
        helper.make_node("Sin", ["phase"], ["wave"]),
        helper.make_node("Mul", ["wave", "said"], ["voiced"]),
        helper.make_node("Mul", ["voiced", "volume"], ["audio"]),
    ]  # fmt: skip
    given = [
        helper.make_tensor_value_info(tokens, TensorProto.INT64, [1, "n"]),
        helper.make_tensor_value_info("style", TensorProto.FLOAT, [1, 256]),
        helper.make_tensor_value_info("speed", TensorProto.FLOAT, [1]),
    ]
    taken = [helper.make_tensor_value_info("audio", TensorProto.FLOAT, ["samples"])]
    if timed:
        taken.append(helper.make_tensor_value_info("duration", TensorProto.INT64, ["n"]))
    axis = helper.make_tensor("axis", TensorProto.INT32, [], [0])
    graph = helper.make_graph(nodes, "stub", given, taken, [axis])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return str(path)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> KokoroConfig:
    folder = tmp_path_factory.mktemp("kokoro")
    with (folder / "voices.bin").open("wb") as file:
        style = np.zeros((510, 1, 256), np.float32)
        np.savez(file, af_heart=style, bm_george=style, ff_siwis=style)
    return KokoroConfig(model=stub(folder / "stub.onnx"), voices=str(folder / "voices.bin"), device="cpu", threads=1)


class TestKokoroTts(TtsContract):
    @pytest.fixture(autouse=True)
    def stubbed(self, config: KokoroConfig) -> None:
        self.config = config

    def factory(self) -> Tts:  # type: ignore[override]
        return KokoroTts(self.config)


@pytest.fixture
async def tts(config: KokoroConfig) -> AsyncIterator[KokoroTts]:
    engine = KokoroTts(config)
    await engine.start()
    yield engine
    await engine.close()


def test_the_loader_knows_it(config: KokoroConfig) -> None:
    assert isinstance(choose(Config(engines=EnginesConfig(tts="kokoro"), kokoro=config)).tts, KokoroTts)


async def test_voices_have_the_language_of_their_first_letter(tts: KokoroTts) -> None:
    assert tts.voices() == {"af_heart": "en-us", "bm_george": "en-gb", "ff_siwis": "fr-fr"}
    sizes = {voice: (await whole(tts, "Paris is a city.", voice=voice)).pcm.size for voice in tts.voices()}
    assert sizes["ff_siwis"] != sizes["af_heart"], "the same letters are other phonemes"


async def test_a_voice_of_another_script_reads_english_and_does_not_spell_it(
    config: KokoroConfig, tmp_path: Path
) -> None:
    with (tmp_path / "voices.bin").open("wb") as file:
        np.savez(file, af_heart=np.zeros((510, 1, 256), np.float32), jf_alpha=np.zeros((510, 1, 256), np.float32))
    tts = KokoroTts(msgspec.structs.replace(config, voices=str(tmp_path / "voices.bin")))
    await tts.start()
    try:
        sizes = [(await whole(tts, "José, hello there.", voice=voice)).pcm.size for voice in ("af_heart", "jf_alpha")]
        assert sizes[0] == sizes[1]
        own = [(await whole(tts, "こんにちは。", voice=voice)).pcm.size for voice in ("af_heart", "jf_alpha")]
        assert own[0] != own[1], "its own script stays its own"
    finally:
        await tts.close()


@pytest.mark.slow
async def test_the_real_model_speaks_english_in_a_japanese_voice() -> None:
    known = "kokoro-v1.0.int8"
    tts = KokoroTts(KokoroConfig(model=known, voices=known, voice="jf_alpha", device="cpu", threads=1, workers=1))
    await tts.start()
    try:
        speech = await whole(tts, "We are open Tuesday to Sunday.")
    finally:
        await tts.close()
    assert 1.2 < speech.pcm.size / tts.rate < 3.5, "spelled letter by letter it takes 6 s"
    assert np.abs(speech.pcm).max() > 3000


async def test_words_end_where_the_model_says(tts: KokoroTts) -> None:
    speech = await whole(tts, "Hello there, Anna.")
    assert [word.text for word in speech.words] == ["Hello", "there,", "Anna."]
    assert speech.words[0].end == pytest.approx(len("həlˈoʊ ") * 3 * FRAME, abs=240)


async def test_words_that_phonemes_join_end_near_where_they_should(tts: KokoroTts) -> None:
    words = (await whole(tts, TEXT)).words
    assert [word.text for word in words] == TEXT.split(), '"of the" is one word to espeak-ng'
    ends = [word.end for word in words]
    assert ends == sorted(ends) and len(set(ends)) >= 5


async def test_a_model_without_durations_leaves_the_times_to_the_caller(config: KokoroConfig, tmp_path: Path) -> None:
    model = stub(tmp_path / "older.onnx", tokens="input_ids", timed=False)
    engine = KokoroTts(msgspec.structs.replace(config, model=model))
    await engine.start()
    speech = await whole(engine, TEXT)
    await engine.close()
    assert speech.pcm.size and not speech.words


async def test_what_espeak_marks_as_foreign_is_not_read_out(tts: KokoroTts) -> None:
    """French espeak-ng writes "(en)wˈiːkɛnd(fr)"."""
    async with aclosing(tts.speak("weekend", voice="ff_siwis")) as speech:
        (piece,) = [piece async for piece in speech]
    assert piece.pcm.size < 12 * 3 * FRAME


async def test_a_first_phrase_overtakes_later_ones(config: KokoroConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = KokoroTts(msgspec.structs.replace(config, workers=1))
    await engine.start()
    free, done = threading.Event(), list[str]()
    speak = kokoro._KokoroModel.speak

    def slow(model: kokoro._KokoroModel, text: str, voice: str, speed: float) -> Speech:
        free.wait(5)
        done.append(text)
        return speak(model, text, voice, speed)

    monkeypatch.setattr(kokoro._KokoroModel, "speak", slow)
    async with asyncio.TaskGroup() as group:
        for text in ("running", "later", "later still"):
            group.create_task(collected(engine.speak(text)))
        await asyncio.sleep(0.05)
        group.create_task(collected(engine.speak("first", first=True)))
        await asyncio.sleep(0.05)
        free.set()
    await engine.close()
    assert done == ["running", "first", "later", "later still"]


async def test_a_model_that_fails_and_fails_is_loaded_again(
    tts: KokoroTts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*given: object, **options: object) -> None:
        raise RuntimeError("CUDA failure 700: an illegal memory access was encountered")

    voices = tts.voices()
    monkeypatch.setattr(tts.core.model._kokoro, "create_timed", fail)
    for _ in range(FAILURES):
        assert tts.alive and isinstance(tts, CanBreak)
        with pytest.raises(EngineError, match="illegal memory access"):
            await whole(tts, TEXT)
    await until(lambda: not tts.alive)
    assert tts.voices() == voices
    with pytest.raises(EngineDead):
        await whole(tts, TEXT)
    await until(lambda: tts.alive)
    assert (await whole(tts, TEXT)).pcm.size
    assert "the speech synthesis ended" in caplog.text and "could not be cleared away" not in caplog.text


async def test_who_waits_when_a_model_is_given_up_is_told(
    config: KokoroConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = KokoroTts(msgspec.structs.replace(config, workers=1))
    await engine.start()
    free, voice = threading.Event(), engine.core
    model = voice.model
    monkeypatch.setattr(model._kokoro, "create_timed", lambda *given, **options: free.wait(5) and 1 / 0)
    phrases = [asyncio.create_task(collected(engine.speak(text))) for text in ("running", "waiting", "waiting, too")]
    await asyncio.sleep(0.05)
    await voice.close()
    free.set()
    said = await asyncio.gather(*phrases, return_exceptions=True)
    await engine.close()
    assert [type(error) for error in said] == [EngineError, EngineDead, EngineDead]
    assert model._kokoro is None, "its memory is free"


class Overlapping:
    """A session that notes how many runs there are at a time, on the device that it says."""

    def __init__(self, session: Any, providers: list[str]) -> None:
        self._session, self._providers = session, providers
        self._counting, self._running = threading.Lock(), 0
        self.most = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def get_providers(self) -> list[str]:
        return self._providers

    def run(self, *given: Any, **options: Any) -> Any:
        with self._counting:
            self._running += 1
            self.most = max(self.most, self._running)
        time.sleep(0.1)
        try:
            return self._session.run(*given, **options)
        finally:
            with self._counting:
                self._running -= 1


@pytest.mark.parametrize(
    ("providers", "at_a_time"),
    [(["CPUExecutionProvider"], 2), (["CUDAExecutionProvider", "CPUExecutionProvider"], 1)],
    ids=["CPU", "GPU"],
)
async def test_two_phrases_run_at_a_time_on_a_cpu_and_one_on_a_gpu(
    config: KokoroConfig, monkeypatch: pytest.MonkeyPatch, providers: list[str], at_a_time: int
) -> None:
    session = Overlapping(kokoro._session(config), providers)
    monkeypatch.setattr(kokoro, "_session", lambda config: session)
    engine = KokoroTts(msgspec.structs.replace(config, workers=2))
    await engine.start()
    said = await asyncio.gather(*(whole(engine, TEXT) for _ in range(4)))
    await engine.close()
    assert session.most == at_a_time
    for speech in said:
        assert_same_speech(speech, said[0])


async def collected(pieces: AsyncGenerator[Speech, None]) -> list[Speech]:
    return [piece async for piece in pieces]


async def test_the_embedded_voice_speaks_beside_it(tts: KokoroTts) -> None:
    """Both use espeak-ng, which is one global instance: kokoro's is a copy of the library."""
    espeak = EspeakTts()
    await espeak.start()
    alone = await whole(espeak, TEXT)
    together = await asyncio.gather(
        *(whole(tts, TEXT, voice=voice) for voice in tts.voices()), whole(espeak, TEXT), whole(tts, TEXT)
    )
    assert_same_speech(together[3], alone)
    assert_same_speech(together[0], together[4])


# --- what is not there --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["model", "voices"])
async def test_a_missing_file_says_what_to_fetch(config: KokoroConfig, key: str) -> None:
    engine = KokoroTts(msgspec.structs.replace(config, **{key: "kokoro-or-voices.bin"}))
    with pytest.raises(EngineMissing, match=rf"kokoro.{key}: there is no kokoro-or-voices.bin; fetch it with"):
        await engine.start()
    with pytest.raises(EngineError, match="has not been started"):
        await whole(engine, TEXT)


async def test_a_missing_package_says_how_to_install_it(config: KokoroConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kokoro_onnx", None)
    with pytest.raises(EngineMissing, match=r"pip install 'voicepipe-pop\[kokoro\]'"):
        await KokoroTts(config).start()


async def test_files_of_something_else(config: KokoroConfig, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(b"no model")
    with pytest.raises(EngineError, match="cannot be loaded as an ONNX model"):
        await KokoroTts(msgspec.structs.replace(config, model=str(other))).start()
    with pytest.raises(EngineError, match="not a Kokoro model"):
        await KokoroTts(msgspec.structs.replace(config, model=stub(other, tokens="words"))).start()
    with pytest.raises(EngineError, match="cannot be read as Kokoro's voices"):
        await KokoroTts(msgspec.structs.replace(config, voices=config.model)).start()
    with pytest.raises(EngineError, match="choose one of af_heart, bm_george, ff_siwis"):
        await KokoroTts(msgspec.structs.replace(config, voice="nobody")).start()


async def test_a_gpu_that_is_asked_for_must_be_there(config: KokoroConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(EngineMissing, match="install onnxruntime-gpu in its place"):
        await KokoroTts(msgspec.structs.replace(config, device="cuda:1")).start()


@pytest.mark.filterwarnings("ignore:Specified provider")
async def test_a_gpu_that_cannot_be_used(config: KokoroConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where CUDA's libraries are not those that onnxruntime was built for."""
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr("onnxruntime.preload_dlls", lambda: None)
    with pytest.raises(EngineError, match='set kokoro.device to "cpu"'):
        await KokoroTts(msgspec.structs.replace(config, device="cuda:1")).start()
