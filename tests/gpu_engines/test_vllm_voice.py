"""NeuTTS-Air by the real vLLM and the real NeuCodec on a CPU, both tiny with random weights: `make test-vllm`.

What it says is noise and never ends by itself, so every phrase has the length at which a runaway is ended.
"""

import asyncio
import logging
from collections.abc import AsyncIterator

import msgspec
import numpy as np
import pytest
import pytest_asyncio

from tests.engines.contract import TtsContract, whole
from tests.models import tiny_neutts
from tests.support.waiting import until
from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.config.engine_config import NeuttsConfig, RecordedVoice
from voicepipe.engines.tts.neutts.neutts import NeuTts
from voicepipe.engines.tts.neutts.windows import CodeWindow, CodeWindows, CrossFade

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]
TEXT = "A table for two, on Friday at seven."
CONSENT = "nobody: it is noise, 2026"
ARGS = {"enforce_eager": True, "dtype": "float32", "max_num_seqs": 8}
CACHE = 32 << 20


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> NeuttsConfig:
    model, codec, recording = tiny_neutts.make(tmp_path_factory.mktemp("neutts"))
    voices = {name: RecordedVoice(str(recording), tiny_neutts.SAID, CONSENT) for name in ("anna", "ben")}
    return NeuttsConfig(
        str(model), str(codec), "anna", device="cpu", kv_cache_memory_bytes=CACHE, args=ARGS, voices=voices
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(config: NeuttsConfig) -> AsyncIterator[NeuTts]:
    """One for all tests: it takes a quarter of a minute."""
    tts = NeuTts(config)
    await tts.start()
    yield tts
    await tts.close()


class TestNeutts(TtsContract):
    text = TEXT

    @pytest.fixture
    def tts(self, engine: NeuTts) -> NeuTts:
        return engine

    async def test_starts_and_closes_repeatedly(self, tts: NeuTts) -> None:  # type: ignore[override]
        """Closing is tried when all have used it."""
        await tts.start()
        assert (await whole(tts, TEXT)).pcm.size and tts.restarts == 0


async def test_sound_comes_while_the_rest_is_still_being_made(engine: NeuTts) -> None:
    sizes, made = [], []
    async for speech in engine.speak(TEXT, first=True):
        sizes.append(speech.pcm.size / engine.rate)
        made.append(engine.core.llm.get_num_unfinished_requests())
    assert made[0] == 1 and made[-1] == 0
    assert 0 < sizes[0] < 0.5 and max(sizes) <= 1.2, "a little at first, then more at a time"
    assert len(sizes) > 3


async def test_two_callers_hear_their_sound_at_the_same_time(engine: NeuTts) -> None:
    order: list[str] = []

    async def listen(name: str) -> None:
        async for _ in engine.speak(TEXT, voice=name):
            order.append(name)  # noqa: PERF401

    await asyncio.gather(listen("anna"), listen("ben"))
    assert order.index("ben") < len(order) - 1 - order[::-1].index("anna")
    assert order.index("anna") < len(order) - 1 - order[::-1].index("ben")


async def test_who_stops_listening_frees_the_request(engine: NeuTts) -> None:
    async def listen() -> None:
        async for _ in engine.speak(TEXT):
            await asyncio.sleep(0)

    speaking = engine.speak(TEXT)
    await anext(speaking)
    tasks = [asyncio.create_task(listen()) for _ in range(3)]
    await until(lambda: engine.core.llm.get_num_unfinished_requests() >= 1)
    await speaking.aclose()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await until(lambda: not engine.core.llm.get_num_unfinished_requests())
    assert (await whole(engine, TEXT)).pcm.size and engine.alive


async def test_what_would_go_on_for_ever_is_ended(engine: NeuTts, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "voicepipe.engines.tts.neutts.neutts")
    short, long = await whole(engine, "Yes."), await whole(engine, f"{TEXT} {TEXT}")
    assert short.pcm.size < 3 * engine.rate < long.pcm.size < 20 * engine.rate
    assert "went on and on" in caplog.text


async def test_a_text_longer_than_the_context_holds_is_spoken_in_pieces(engine: NeuTts) -> None:
    text = " ".join([TEXT] * 6)
    speech = [piece async for piece in engine.speak(text)]
    assert [word.text for piece in speech for word in piece.words] == text.split()
    assert [piece.more for piece in speech] == [True] * (len(speech) - 1) + [False]


async def test_what_is_sent_piece_by_piece_is_what_the_codec_makes_of_all(engine: NeuTts) -> None:
    """With random weights, whose attention to what is far away is the worst there is: 14 dB of a signal's power over
    the difference, and no louder step where two pieces meet than the codec makes elsewhere."""
    codec = engine.core.parts.codec
    codes = np.random.default_rng(1).integers(0, codec.codes, 450).tolist()
    recorded = 200
    expected = codec.decode([codes])[0][recorded * codec.hop :]
    windows, joint, sent = CodeWindows(recorded), CrossFade(codec.hop), []

    def decoded(window: CodeWindow) -> None:
        sent.append(joint.push(window, codec.decode([codes[window.begin : window.end]])[0]))

    for known in range(recorded, len(codes), 6):
        for window in windows.due(known):
            decoded(window)
    for window in windows.due(len(codes), ended=True):
        decoded(window)
    sound = np.concatenate(sent)
    assert sound.size == expected.size
    assert 10 * np.log10(np.mean(expected**2) / np.mean((sound - expected) ** 2)) > 12
    joints = np.cumsum([part.size for part in sent])[:-1]
    steps = np.abs(np.diff(expected))
    assert max(abs(sound[at] - sound[at - 1]) for at in joints) < 1.5 * np.quantile(steps, 0.999)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"args": {"max_num_seq": 1}}, "neutts.args.max_num_seq: .* did you mean max_num_seqs"),
        ({"args": {"device_ids": [1]}}, "neutts.args.device_ids: leave it out"),
        ({"model": "/nowhere"}, "there is no '/nowhere'"),
        ({"device": "cuda:1"}, "neutts.device is 'cuda:1', and the vLLM that is installed computes on the CPU"),
    ],
)
async def test_a_start_that_fails_says_why(config: NeuttsConfig, changes: dict[str, object], said: str) -> None:
    with pytest.raises(EngineError, match=said):
        await NeuTts(msgspec.structs.replace(config, **changes)).start()


async def test_a_language_that_espeak_does_not_know_is_told_with_its_key(config: NeuttsConfig) -> None:
    anna = msgspec.structs.replace(config.voices["anna"], language="pt-brasil")
    with pytest.raises(EngineError, match="neutts.voices.anna.language: .* such as pt-br"):
        await NeuTts(msgspec.structs.replace(config, voices={"anna": anna})).start()


async def test_a_voice_whose_process_is_killed_comes_back(engine: NeuTts) -> None:
    speaking = engine.speak(" ".join([TEXT] * 4))
    await anext(speaking)
    engine.core.processes[0].kill()
    with pytest.raises(EngineDead):
        async for _ in speaking:
            pass
    await until(lambda: not engine.alive)
    with pytest.raises(EngineDead):
        await whole(engine, TEXT)
    await until(lambda: engine.alive, 300)
    assert engine.restarts == 1 and (await whole(engine, TEXT)).pcm.size


async def test_it_is_closed_twice_without_harm(engine: NeuTts) -> None:
    processes = engine.core.processes
    await engine.close()
    await engine.close()
    assert not engine.alive and not engine.voices()
    await until(lambda: not any(process.is_running() for process in processes))
    with pytest.raises(EngineError, match="has not been started"):
        await anext(engine.speak(TEXT))
