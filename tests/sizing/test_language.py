"""Milliseconds, against published measurements and the floors that data sheets set."""

import pytest

from voicepipe.sizing.constants import STEP_TOKENS
from voicepipe.sizing.gpu_models import GPUS, LINKS
from voicepipe.sizing.language import ParallelGroup, communication_ms, prefill_ms, step_ms
from voicepipe.sizing.shapes import LLMS


def group(
    model: str, gpu: str, dtype: str = "bf16", tensor: int = 1, pipeline: int = 1, by: str = "nvlink"
) -> ParallelGroup:
    return ParallelGroup(LLMS[model], dtype, GPUS[gpu], LINKS[by], tensor, pipeline)


def decode_ms(group: ParallelGroup, batch: int, context: int) -> float:
    """From one token to the next, of `batch` replies at a time."""
    return step_ms(group, batch, context, sequences=batch)


@pytest.mark.parametrize(
    ("model", "gpu", "dtype", "batch", "context", "published"),
    [
        ("qwen3-8b", "h100", "bf16", 4, 350, (7.1, 7.4)),  # gpustack: SGLang, vLLM 0.11
        ("qwen3-8b", "h100", "fp8", 4, 350, (5.6, 5.6)),  # gpustack: SGLang
        ("llama-3.1-8b", "a100-40", "bf16", 1, 1088, (13.3, 13.3)),  # johnmusgrave.com: vLLM 0.23
    ],
)
def test_a_token(model: str, gpu: str, dtype: str, batch: int, context: int, published: tuple[float, float]) -> None:
    predicted = decode_ms(group(model, gpu, dtype), batch, context)
    assert 0.95 * published[0] <= predicted <= 1.05 * published[1]


@pytest.mark.parametrize(
    ("model", "dtype", "floor"),
    [
        ("llama-3.1-8b", "bf16", 4.8),
        ("llama-3.1-8b", "fp8", 2.4),
        ("llama-3.2-3b", "bf16", 1.9),
        ("llama-3.2-1b", "bf16", 0.75),
    ],
)
def test_no_token_is_faster_than_the_weights_are_read(model: str, dtype: str, floor: float) -> None:
    assert floor < decode_ms(group(model, "h100", dtype), 1, 500) < 2.5 * floor + 1


def test_the_first_token() -> None:
    """Over HTTP, with four at a time, SGLang takes 27 ms and vLLM 60 for prompts of 230 tokens (gpustack). The step
    itself is a part of that."""
    assert 5 < step_ms(group("qwen3-8b", "h100"), 230, 0, sequences=1) < 27
    assert step_ms(group("qwen3-8b", "h100"), 4096, 0, sequences=1) > 100, (
        "the GPU multiplies; the cached prefix is what saves that"
    )


def test_more_replies_at_a_time_cost_little_until_their_context_does() -> None:
    alone, eight, many = (decode_ms(group("qwen3-8b", "h100"), batch, 2048) for batch in (1, 8, 64))
    assert eight < 1.2 * alone
    assert many > 1.5 * alone


def test_sharing_layers_by_nvlink_pays_and_by_ethernet_does_not() -> None:
    alone = decode_ms(group("llama-3.1-70b", "h100"), 1, 500)
    assert decode_ms(group("llama-3.1-70b", "h100", tensor=4), 1, 500) < 0.4 * alone
    ethernet = group("llama-3.1-70b", "h100", tensor=4, by="ethernet")
    assert communication_ms(ethernet, 1) > 0.5 * decode_ms(ethernet, 1, 500)
    small = group("llama-3.2-1b", "h100", tensor=2, by="ethernet")
    assert decode_ms(small, 1, 500) > decode_ms(group("llama-3.2-1b", "h100"), 1, 500)


def test_a_pipeline_saves_no_time() -> None:
    alone = decode_ms(group("llama-3.1-8b", "h100"), 1, 500)
    assert decode_ms(group("llama-3.1-8b", "h100", pipeline=4), 1, 500) == pytest.approx(alone + 3 * 0.009, abs=0.01)


def test_all_reduces() -> None:
    """Two a layer, of 8 KiB a token; Llama 3.1 8B has 32 layers."""
    alone, two = (group("llama-3.1-8b", "h100", tensor=tensor) for tensor in (1, 2))
    assert communication_ms(alone, 1) == 0
    assert communication_ms(two, 1) / 64 == pytest.approx(0.009, abs=0.001), "a few kilobytes: latency alone"
    assert communication_ms(two, 36_000) / 64 == pytest.approx(1.0, abs=0.1), "many: bandwidth alone"


def test_experts_are_read_as_far_as_tokens_go_through_them() -> None:
    """3 of 30 billion weights serve one token: it is faster than the dense 8 billion, a batch of 64 is not."""
    alone, many = (decode_ms(group("qwen3-30b-a3b", "h100"), batch, 500) for batch in (1, 64))
    assert alone < decode_ms(group("qwen3-8b", "h100"), 1, 500)
    assert many > 4 * alone


def test_a_long_prompt_is_read_in_pieces() -> None:
    """Of as many tokens as a step has, of which each reply beside it takes one."""
    one = group("qwen3-8b", "h100")
    assert prefill_ms(one, 40, 2048, 1) == step_ms(one, 40, 2048, sequences=1), "one piece"
    pieces = [step_ms(one, STEP_TOKENS, after_wait, sequences=1) for after_wait in range(0, 2048, STEP_TOKENS)]
    assert prefill_ms(one, 2048, 0, 1) == pytest.approx(sum(pieces))
    assert max(pieces) < 0.5 * step_ms(one, 2048, 0, sequences=1), "how long others wait for their next token"
    assert prefill_ms(one, STEP_TOKENS, 0, 9) > prefill_ms(one, STEP_TOKENS - 8, 0, 9) + 5, "a second step"
