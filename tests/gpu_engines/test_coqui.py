"""coqui-tts through its real package, in its own environment, on a tiny VITS with random weights."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.engines.contract import TtsContract, whole
from tests.support.waiting import until
from voicepipe.base.errors import EngineDead, EngineError, EngineMissing
from voicepipe.config import Config
from voicepipe.config.engine_config import CoquiConfig, EnginesConfig
from voicepipe.engines.base import Tts
from voicepipe.engines.loader import choose
from voicepipe.engines.tts.coqui import CoquiTts

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-coqui/bin/python"
TEXT = "A table for two, on Friday at seven."

pytestmark = [
    pytest.mark.engine,
    pytest.mark.asyncio(loop_scope="module"),  # the engine of all tests is loaded once: 10 s
    pytest.mark.skipif(not PYTHON.exists(), reason="there is no .venv-coqui: make test-engines makes it"),
]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> CoquiConfig:
    folder = tmp_path_factory.mktemp("vits")
    subprocess.run([PYTHON, ROOT / "tests/models/make_vits.py", folder], check=True)
    return CoquiConfig(python=str(PYTHON), model=str(folder), device="cpu", start_timeout_s=600)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(config: CoquiConfig) -> AsyncIterator[CoquiTts]:
    engine = choose(Config(engines=EnginesConfig(tts="coqui"), coqui=config)).tts
    assert isinstance(engine, CoquiTts)
    await engine.start()
    yield engine
    await engine.close()


class TestCoquiTts(TtsContract):
    text = TEXT

    @pytest.fixture(autouse=True)
    def built(self, config: CoquiConfig) -> None:
        self.config = config

    def factory(self) -> Tts:  # type: ignore[override]
        return CoquiTts(self.config)

    @pytest.fixture
    def tts(self, shared: CoquiTts) -> Tts:
        return shared


async def test_it_speaks_at_the_models_rate_with_its_speakers(shared: CoquiTts) -> None:
    assert shared.rate == 22_050 and shared.voices() == {"anna": "en", "ben": "en"}
    assert (await whole(shared, TEXT, voice="ben")).pcm.size


async def test_words_end_where_the_model_says(shared: CoquiTts) -> None:
    """Every sign and every blank between signs takes it two frames of 256 samples."""
    words = (await whole(shared, TEXT)).words
    assert [word.text for word in words] == TEXT.split()
    assert words[0].end == pytest.approx(5 * 512, abs=2 * 512)
    assert words[1].end - words[0].end == pytest.approx(len("table ") * 1024, abs=512)


async def test_what_the_model_has_no_signs_for_is_silent(shared: CoquiTts) -> None:
    assert (await whole(shared, "42 你好")).pcm.size == 0
    assert (await whole(shared, TEXT)).pcm.size


async def test_a_first_phrase_overtakes_later_ones(shared: CoquiTts) -> None:
    done: list[str] = []

    async def speak(name: str, text: str, *, first: bool = False) -> None:
        async with aclosing(shared.speak(text, first=first)) as pieces:
            assert [piece async for piece in pieces]
        done.append(name)

    async with asyncio.TaskGroup() as group:
        for name in ("running", "later", "later still"):
            group.create_task(speak(name, " ".join([TEXT] * 6)))
        await asyncio.sleep(0)
        group.create_task(speak("first", "Yes.", first=True))
    assert done == ["running", "first", "later", "later still"]


async def test_a_process_that_is_killed_is_replaced(shared: CoquiTts) -> None:
    assert shared._pool
    (supervised,) = shared._pool._supervised
    speaking = asyncio.create_task(whole(shared, " ".join([TEXT] * 6)))
    await asyncio.sleep(0.05)
    os.kill(supervised.core._process.pid, signal.SIGKILL)
    with pytest.raises(EngineDead, match="coqui's process ended .SIGKILL."):
        await speaking
    assert not shared.alive
    await until(lambda: shared.alive, 600)
    assert (await whole(shared, TEXT)).pcm.size


# --- what is not there ---------------------------------------------------------------------------------------------


async def test_without_its_environment_or_a_model(config: CoquiConfig, tmp_path: Path) -> None:
    for wrong, says in (
        ({"python": ""}, "needs an environment of its own"),
        ({"python": str(tmp_path / "python")}, "there is no interpreter"),
        ({"model": ""}, "set it to a directory with config.json"),
        ({"model": str(tmp_path / "model")}, "there is no '.*model'"),
    ):
        engine = CoquiTts(msgspec.structs.replace(config, **wrong))
        with pytest.raises(EngineMissing, match=says):
            await engine.start()
        assert not engine.alive and not engine.voices()
        with pytest.raises(EngineError, match="has not been started"):
            await whole(engine, TEXT)


async def test_an_environment_without_coqui_tts(config: CoquiConfig) -> None:
    with pytest.raises(EngineMissing, match="lacks what coqui needs: No module named '(torch|TTS)'"):
        await CoquiTts(msgspec.structs.replace(config, python=sys.executable)).start()


@pytest.mark.parametrize(
    ("key", "wrong", "says"),
    [
        ("voice", "carla", "choose one of anna, ben"),
        (
            "device",
            "cuda:9",
            "could not be loaded: RuntimeError: coqui.device is 'cuda:9', and torch .* sees . GPUs: install",
        ),
        ("model", "empty", "could not be loaded: FileNotFoundError"),
    ],
)
async def test_what_the_model_cannot_do(config: CoquiConfig, tmp_path: Path, key: str, wrong: str, says: str) -> None:
    if key == "model":
        (tmp_path / wrong).mkdir()
        wrong = str(tmp_path / wrong)
    engine = CoquiTts(msgspec.structs.replace(config, **{key: wrong}))
    with pytest.raises(EngineError, match=says):
        await engine.start()
    assert not engine.alive
