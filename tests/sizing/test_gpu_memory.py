"""Bytes, against what authors publish of their models: the size of checkpoints."""

import pytest

from voicepipe.sizing import constants, gpu_memory
from voicepipe.sizing.recognition import Nemotron
from voicepipe.sizing.shapes import ASRS, LLMS


@pytest.mark.parametrize(
    ("name", "dtype", "gigabytes"),
    [
        ("llama-3.1-8b", "bf16", 16.06),
        ("llama-3.1-8b", "awq4", 5.74),
        ("llama-3.1-70b", "awq4", 39.8),
        ("qwen3-8b", "fp8", 9.44),
    ],
)
def test_checkpoints(name: str, dtype: str, gigabytes: float) -> None:
    assert gpu_memory.llm_weights(LLMS[name], dtype) / 1e9 == pytest.approx(gigabytes, rel=0.01)


def test_the_cache_of_a_call() -> None:
    """Eight heads of 128 numbers, not the 32 of the queries: 128 KiB a token."""
    llama = LLMS["llama-3.1-8b"]
    assert gpu_memory.kv_token(llama) == 128 * 1024
    assert gpu_memory.kv_call(llama, 2048) == 256 * 2**20
    assert gpu_memory.kv_call(llama, 17) == 32 * 128 * 1024, "in blocks of 16"
    assert [gpu_memory.kv_shards(llama, tensor) for tensor in (1, 2, 8, 16)] == [1, 2, 8, 8]


def test_recognition() -> None:
    turbo = ASRS["large-v3-turbo"]
    assert gpu_memory.whisper(turbo) == 2 * turbo.weights + gpu_memory.whisper_working()
    a_slot = (Nemotron().memory - 2 * constants.NEMOTRON_WEIGHTS - constants.ASR_WORKSPACE) / constants.NEMOTRON_STREAMS
    assert 13e6 < a_slot < 16e6, "its 7 MB, and the copy that is settled"


def test_logits_of_whispers_steps() -> None:
    """All are kept until the pass is over: 370 MB of the largest, 8 utterances of 28 s."""
    working = gpu_memory.whisper_working(batch=8) - constants.ASR_WORKSPACE
    assert working == 224 * ASRS["small"].vocab * 4 * 8 and working / 1e6 == pytest.approx(370, rel=0.01)
    assert gpu_memory.whisper_working(batch=1) - constants.ASR_WORKSPACE == working / 8
