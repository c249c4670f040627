"""The turn model's adapter, on a small graph of the real inputs and outputs: a stub, it knows nothing of speech.

It tells whether the last second is louder than the rest of the 8 s.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from latency_probes import clips
from tests.engines.contract import check_life, tone
from voicepipe.audio import RATE, Pcm
from voicepipe.base import environment
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.config import Config
from voicepipe.config.engine_config import EnginesConfig
from voicepipe.engines.loader import choose
from voicepipe.engines.vad.smart_turn import SmartTurn
from voicepipe.turn.endpoint import EndpointConfig

pytestmark = pytest.mark.engine


def stub(path: Path, input_name: str = "input_features") -> Path:
    """sigmoid(4 * (mean of the last 100 frames - mean of all 800))."""

    def constant(name: str, *values: int) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [name], value_ints=list(values))

    nodes = [
        constant("from", 700), constant("to", 800), constant("axis", 2), constant("means", 1, 2),
        helper.make_node("Constant", [], ["four"], value_float=4.0),
        helper.make_node("Slice", [input_name, "from", "to", "axis"], ["end"]),
        helper.make_node("ReduceMean", ["end", "means"], ["of_end"], keepdims=0),
        helper.make_node("ReduceMean", [input_name, "means"], ["of_all"], keepdims=0),
        helper.make_node("Sub", ["of_end", "of_all"], ["louder"]),
        helper.make_node("Mul", ["louder", "four"], ["odds"]),
        helper.make_node("Sigmoid", ["odds"], ["probability"]),
        constant("column", 1),
        helper.make_node("Unsqueeze", ["probability", "column"], ["output"]),
    ]  # fmt: skip
    given = helper.make_tensor_value_info(input_name, TensorProto.FLOAT, ["batch", 80, 800])
    taken = helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", 1])
    graph = helper.make_graph(nodes, "stub", [given], [taken])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


@pytest.fixture
async def model(tmp_path: Path) -> AsyncIterator[SmartTurn]:
    engine = SmartTurn(str(stub(tmp_path / "stub.onnx")))
    await engine.start()
    yield engine
    await engine.close()


def quiet(seconds: float) -> Pcm:
    return np.zeros(round(seconds * RATE), np.int16)


async def heard(model: SmartTurn, *sounds: Pcm) -> float:
    stream = model.stream()
    for sound in sounds:
        for at in range(0, sound.size, 320):
            stream.feed(sound[at : at + 320])
    return await stream.complete()


async def test_starts_and_closes_repeatedly(tmp_path: Path) -> None:
    await check_life(SmartTurn(str(stub(tmp_path / "stub.onnx"))))


async def test_what_was_heard_last_stands_at_the_end_of_eight_seconds(model: SmartTurn) -> None:
    assert await heard(model, tone(1.0)) > 0.9
    assert await heard(model, tone(1.0), quiet(2.0)) < 0.5
    assert await heard(model, quiet(30.0), tone(1.0)) > 0.9
    assert await heard(model, tone(30.0)) == pytest.approx(0.5, abs=0.05)


async def test_the_level_does_not_matter(model: SmartTurn) -> None:
    loud, soft = [await heard(model, tone(1.0, level), quiet(0.5)) for level in (8000, 800)]
    assert loud == pytest.approx(soft, abs=0.02)


async def test_no_sound_is_no_failure(model: SmartTurn) -> None:
    assert 0 <= await model.stream().complete() <= 1


async def test_the_real_one_is_loaded_by_its_name_and_hears_differences() -> None:
    spoken = clips.decode(Path(clips.__file__).parent / "utterances" / "finished" / "001-heart.opus")
    engine = SmartTurn("smart-turn-v3.2")
    await engine.start()
    try:
        whole, cut = await heard(engine, spoken), await heard(engine, spoken[: spoken.size // 2])
    finally:
        await engine.close()
    assert 0 < cut < 0.5 < whole < 1


async def test_a_model_that_is_nowhere_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.MODELS, str(tmp_path))
    with pytest.raises(EngineMissing, match=r"endpoint\.model: smart-turn-v3\.2 is not on this machine; fetch it with"):
        await SmartTurn("smart-turn-v3.2").start()
    with pytest.raises(
        EngineMissing, match=r"endpoint\.model: there is no nowhere\.onnx; give the path of a Smart Turn"
    ):
        await SmartTurn("nowhere.onnx").start()


async def test_another_file_is_refused_with_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "no.onnx").write_bytes(b"nothing")
    with pytest.raises(EngineError, match=r"no\.onnx cannot be loaded as an ONNX model"):
        await SmartTurn(str(tmp_path / "no.onnx")).start()
    with pytest.raises(EngineError, match="is not a Smart Turn v3 model: its input is not 'input_features'"):
        await SmartTurn(str(stub(tmp_path / "other.onnx", "pixels"))).start()


async def test_before_start_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="not been started"):
        await SmartTurn(str(tmp_path / "stub.onnx")).stream().complete()


async def test_a_configured_path_loads_it_beside_the_other_engines(tmp_path: Path) -> None:
    hears = EnginesConfig(vad="scripted", llm="scripted", tts="scripted")
    assert choose(Config(engines=hears, endpoint=EndpointConfig(model=""))).turn is None
    engines = choose(Config(engines=hears, endpoint=EndpointConfig(model=str(stub(tmp_path / "stub.onnx")))))
    assert engines.turn and engines.turn in engines.all()
    await engines.turn.start()
    assert 0 <= await engines.turn.stream().complete() <= 1
    await engines.turn.close()


def test_beside_scripted_words_none_judges() -> None:
    """They have nothing to do with the voice."""
    assert choose(Config(engines=EnginesConfig(asr="scripted"))).turn is None
