"""What the dashboard names as what makes callers wait."""

import pytest
from msgspec.structs import replace

from tests.observe.test_metrics import HEALTH, POP
from voicepipe.observe.delay_causes import PopMeasurements, delay_causes
from voicepipe.observe.external_metrics import VllmLoad

WELL = PopMeasurements(timed=0, late=[], late_count=0, networks=[], health=replace(HEALTH, down={}))


@pytest.mark.parametrize(
    ("kv_cache", "running", "waiting", "says"),
    [
        (0.85, 9, 0, ""),
        (0.95, 9, 0, "95% full, the next reply may wait"),
        (1.0, 9, 3, "100% full, too full for the next reply (3 wait)"),
        (0.07, 4, 6, ""),  # as many replies are made as vllm.args.max_num_seqs lets in
    ],
)
def test_a_kv_cache_is_full_when_the_next_reply_has_no_room(
    kv_cache: float, running: float, waiting: float, says: str
) -> None:
    named = delay_causes(replace(WELL, vllm=[VllmLoad(kv_cache, running, waiting)]), POP)
    assert [culprit.what for culprit in named] == (["kv_cache"] if says else [])
    assert all(says in culprit.says for culprit in named)


def test_a_kv_cache_over_half_full_is_one_of_two_reasons_why_replies_wait() -> None:
    """The next prompt does not fit, or as many run as vllm.args.max_num_seqs lets in."""
    [named] = delay_causes(replace(WELL, vllm=[VllmLoad(0.6, running=16, waiting=5)]), POP)
    assert "60% full" in named.says and "5 replies wait" in named.says
    assert "give it more memory" in named.says
    assert "16 at a time, raise vllm.args.max_num_seqs" in named.says


def test_of_several_engines_each_is_judged_by_its_own_figures() -> None:
    halves = VllmLoad(0.7, running=3, waiting=0), VllmLoad(0.1, running=4, waiting=6)
    assert delay_causes(replace(WELL, vllm=halves), POP) == []
    [named] = delay_causes(replace(WELL, vllm=[*halves, VllmLoad(0.95, 9, 2), VllmLoad(0.92, 9, 0)]), POP)
    assert "95% full" in named.says and "(2 wait)" in named.says
