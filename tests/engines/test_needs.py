"""What engines take of a GPU, by their models' files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.engines.sparse import configured, sparse_models
from tests.support.fake_nvml import GIB
from voicepipe import config
from voicepipe.base.errors import EngineError
from voicepipe.config import Config
from voicepipe.engines import gpu_placement
from voicepipe.engines.gpu_placement import LlmNeed
from voicepipe.engines.needs import needs
from voicepipe.sizing.constants import WHISPER_LOGITS

LOGITS = 8 * WHISPER_LOGITS
BY_RAY = {"distributed_executor_backend": "ray"}
"""Of Whisper's steps, of as many utterances as it reads in one go."""


@pytest.fixture
def models(tmp_path: Path) -> Config:
    return sparse_models(tmp_path)


def changed(models: Config, **vllm: Any) -> Config:
    tables = {"model": models.vllm.model, "kv_cache_memory_bytes": models.vllm.kv_cache_memory_bytes, **vllm}
    return config.parse({"engines": {"llm": "vllm"}, "vllm": tables})


def test_needs_of_each_stage(models: Config) -> None:
    asr, tts, language = needs(gpu_placement.place(models, 1))
    assert (asr.weights, tts.weights, language.weights) == (2 * GIB, GIB, 16 * GIB)
    assert asr.working - LOGITS == tts.working + GIB // 2, "one process, one CUDA context"
    assert isinstance(language, LlmNeed)
    assert language.cache_least == 8192 * 144 * 1024
    assert 8 * GIB < language.weights_fp8 < 9 * GIB
    assert list(needs(gpu_placement.place(models, 0)))[:-1] == [], "on the CPU nothing is needed of a GPU"


def test_a_recogniser_that_streams_needs_its_weights_and_the_memory_of_its_utterances(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "nemotron_asr_streaming", "dtype": "float32"}')
    (tmp_path / "tokenizer.json").touch()
    with (tmp_path / "model.safetensors").open("wb") as sparse:
        sparse.truncate(2 * GIB)
    tables = {"engines": {"asr": "nemotron", "llm": "frontdesk", "tts": "espeak"}}
    nemotron = {"model": str(tmp_path), "streams": 100}
    placed = gpu_placement.place(config.parse({**tables, "nemotron": nemotron}), 1)
    assert placed.nemotron.device == "cuda:0"
    (need,) = needs(placed)
    assert need.weights == GIB, "it computes in 16 bits"
    few, wide = ({**nemotron, "device": "cuda:0", **more} for more in ({"streams": 1}, {"dtype": "float32"}))
    (one,), (double,) = (needs(config.parse({**tables, "nemotron": each})) for each in (few, wide))
    assert 7.0e6 < (need.working - one.working) / 99 < 7.4e6
    assert double.weights == 2 * GIB and double.working > need.working
    assert list(needs(gpu_placement.place(config.parse({**tables, "nemotron": nemotron}), 0))) == []


def test_each_gpu_of_speech_has_a_context(models: Config) -> None:
    apart = config.parse(
        {
            "engines": {"asr": "whisper", "tts": "kokoro"},
            "whisper": {"model": models.whisper.model, "device": "cuda:0"},
            "kokoro": {"model": models.kokoro.model, "device": "cuda:1"},
        }
    )
    asr, tts = needs(apart)
    assert asr.working - LOGITS == tts.working


def test_whisper_keeps_the_logits_of_all_that_it_reads_in_one_go(models: Config) -> None:
    engines, vllm = {"tts": "espeak"}, {"kv_cache_memory_bytes": GIB, "args": BY_RAY}
    whisper = {"model": models.whisper.model, "device": "cuda:0"}
    (few,), (many,) = (
        needs(configured(engines=engines, vllm=vllm, whisper={**whisper, "batch": batch})) for batch in (1, 8)
    )
    assert many.working - few.working == 7 * LOGITS // 8


def test_a_voice_that_streams_has_a_codec_here_and_a_model_in_vllms_process(models: Config, tmp_path: Path) -> None:
    voices = {"anna": {"file": str(tmp_path / "voices.bin"), "text": "a", "consent": "nobody, 2026"}}
    parts = {"model": str(tmp_path / "llm"), "codec": str(tmp_path / "codec"), "voices": voices}
    (tmp_path / "codec").mkdir()
    (tmp_path / "codec" / "model.safetensors").touch()
    os.truncate(tmp_path / "codec" / "model.safetensors", 3 * GIB)
    tables = {"engines": {"tts": "neutts", "llm": "openai"}, "whisper": {"model": models.whisper.model}}
    streams = configured(**tables, neutts=parts)
    assert gpu_placement.place(streams, 2).neutts.device == "cuda:0"
    assert (
        gpu_placement.place(configured(**tables | {"engines": {"tts": "neutts"}}, neutts=parts), 2).neutts.device
        == "cuda:1"
    )
    asr, codec, model = needs(gpu_placement.place(streams, 1))
    assert asr.working - LOGITS == codec.working + GIB // 2, "one process, one CUDA context"
    assert (codec.weights, model.weights) == (GIB, 16 * GIB), "once the recordings are read the encoder is forgotten"
    assert model.working == 2 * GIB + streams.neutts.kv_cache_memory_bytes


def test_weights_that_a_clone_has_twice_are_counted_once(models: Config) -> None:
    directory = Path(models.vllm.model)
    (directory / "consolidated.safetensors").touch()
    os.truncate(directory / "consolidated.safetensors", 16 * GIB)
    assert list(needs(changed(models)))[0].weights == 16 * GIB
    index = {"weight_map": {"a": "1.safetensors", "b": "2.safetensors", "c": "1.safetensors"}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    assert list(needs(changed(models)))[0].weights == 16 * GIB


def test_needs_of_a_group(models: Config) -> None:
    (need,) = needs(changed(models, tensor_parallel_size=2, args={"pipeline_parallel_size": 2}))
    assert isinstance(need, LlmNeed)
    assert (need.gpus, need.weights, need.cache_least) == ((0, 1, 2, 3), 4 * GIB, 8192 * 144 * 1024 // 4)


def test_beside_a_model_that_is_spread_over_machines_its_cache_has_a_size(models: Config) -> None:
    tables = {"engines": {"tts": "espeak"}, "whisper": {"model": models.whisper.model, "device": "cuda:0"}}
    with pytest.raises(EngineError, match="kv_cache_memory_bytes is 0, so that vLLM, which is spread over machines"):
        list(needs(configured(vllm={"args": BY_RAY}, **tables)))
    (need,) = needs(configured(vllm={"args": BY_RAY, "kv_cache_memory_bytes": GIB}, **tables))
    assert need.stage == "recognition"


def test_who_shares_no_gpu_with_a_model_that_is_spread_over_machines(models: Config) -> None:
    tables = {"engines": {"asr": "scripted", "tts": "coqui"}, "coqui": {"model": models.vllm.model, "device": "cpu"}}
    assert list(needs(configured(vllm={"args": BY_RAY}, **tables))) == []


def test_a_draft_model_takes_memory_too(models: Config, tmp_path: Path) -> None:
    draft = tmp_path / "draft"
    draft.mkdir()
    (draft / "model.safetensors").touch()
    os.truncate(draft / "model.safetensors", 2 * GIB)
    (need,) = needs(changed(models, args={"speculative_config": {"model": str(draft)}}))
    assert need.weights == 18 * GIB


def test_weights_that_are_made_narrow_while_they_are_loaded(models: Config) -> None:
    (need,) = needs(changed(models, args={"quantization": "fp8"}))
    assert isinstance(need, LlmNeed)
    assert need.weights < 9 * GIB and need.weights_fp8 == 0


def test_a_model_that_cannot_be_sized_is_asked_for_no_least_cache(models: Config) -> None:
    file = Path(models.vllm.model) / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "kv_lora_rank": 512}))
    (need,) = needs(changed(models))
    assert isinstance(need, LlmNeed)
    assert (need.weights, need.cache_least, need.weights_fp8) == (16 * GIB, 0, 0)


def test_random_weights_are_as_large_as_true_ones(models: Config) -> None:
    for file in Path(models.vllm.model).glob("*.safetensors"):
        file.unlink()
    (need,) = needs(changed(models, args={"load_format": "dummy"}))
    assert need.weights / GIB == pytest.approx(15.3, abs=0.1)
