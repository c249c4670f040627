"""The ways to put a model on a host, and which of them to take."""

from dataclasses import replace

import pytest

from tests.sizing.hosts import COMPUTE_MS, found, host
from voicepipe.sizing.options import best, enough_gpus, evaluated, options, single_changes
from voicepipe.sizing.shapes import LLMS


def test_among_those_that_answer_calls_it_is_what_a_turn_takes() -> None:
    """Each way is worse than what is advised in one of both: what a turn takes, or how many calls."""
    for model, gpu, gpus, calls in (
        ("llama-3.1-70b", "b200", 4, 8),
        ("qwen3-32b", "h100", 4, 12),
        ("qwen3-8b", "h100", 4, 36),
    ):
        ways = [way for way in found(model, gpu, gpus, calls) if way.calls]
        chosen = best(ways, calls)
        assert chosen
        late = [way for way in ways if way.turn.compute_p95 < chosen.turn.compute_p95 and way.calls > chosen.calls]
        assert chosen.calls >= calls or not late


@pytest.mark.parametrize(("calls", "answered", "mib"), [(1, 64, 1268), (64, 64, 20_276), (64, 9, 2852), (64, 0, 1268)])
def test_the_cache_that_is_configured(calls: int, answered: int, mib: int) -> None:
    """For the calls that it answers of those asked for, a tenth more, or one context as long as any."""
    option = replace(evaluated(host("qwen3-8b", "h100"), calls, COMPUTE_MS), calls=answered)
    assert option.kv_cache_bytes(calls) == mib * 2**20


def test_a_way_has_a_name_and_needs_so_many_gpus() -> None:
    alone, spread, piped = (evaluated(host("qwen3-8b", "h100", 4), 1, COMPUTE_MS) for _ in range(3))
    spread = replace(spread, host=spread.host.with_group(tensor=2))
    piped = replace(piped, host=piped.host.with_group(tensor=2, pipeline=2, dtype="fp8"))
    assert [way.name for way in (alone, spread, piped)] == ["bf16, one GPU", "bf16, TP 2", "fp8, TP 2 x PP 2"]
    assert [(way.gpus, way.pops) for way in (alone, spread, piped)] == [(2, 2), (3, 1), (4, 1)]
    assert replace(alone, calls=9).host_calls == 18


def test_slots_are_what_was_asked_for_as_far_as_it_is_answered() -> None:
    option = replace(evaluated(host("qwen3-8b", "h100"), 1, COMPUTE_MS), calls=9)
    assert [option.slots(calls) for calls in (1, 9, 20)] == [1, 9, 9]
    assert replace(option, calls=0).slots(5) == 1


def test_a_model_is_spread_over_powers_of_two_that_divide_its_heads() -> None:
    """Qwen2.5-7B has 28 heads."""
    ways = [(way.group.tensor, way.group.pipeline) for way in options(host("qwen2.5-7b", "h100", 8), ["bf16"])]
    assert ways == [(1, 1), (2, 1), (4, 1)]


def test_a_pipeline_is_offered_where_one_gpu_is_too_small() -> None:
    ways = [*options(host("llama-3.1-70b", "h100", 8), ["bf16", "awq4"])]
    assert [(way.group.dtype, way.group.tensor, way.group.pipeline) for way in ways if not way.fits] == [("bf16", 1, 1)]
    assert [(way.group.dtype, way.group.pipeline) for way in ways if way.group.pipeline > 1] == [("bf16", 2)]


def test_how_many_gpus_would_be_enough() -> None:
    assert enough_gpus(host("llama-3.1-70b", "l4")) == 16
    assert enough_gpus(host("llama-3.1-70b", "l4", dtype="awq4")) == 4
    assert enough_gpus(host("qwen3-8b", "h100")) == 2, "more than there are"


def test_changes_that_would_answer_more_are_told_the_best_first() -> None:
    option = evaluated(host("qwen3-8b", "h100"), 1, COMPUTE_MS)
    changes = single_changes(option)
    assert {"CUDA MPS", "Nemotron", "weights in AWQ", "a GPU for speech"} <= {what for what, _ in changes}
    calls = [calls for _, calls in changes]
    assert calls == sorted(calls, reverse=True) and min(calls) > option.calls
    assert sum(what in LLMS for what, _ in changes) <= 1
