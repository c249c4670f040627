"""What the dashboard names as what makes callers wait."""

import pytest
from msgspec.structs import replace

from tests.observe.test_metrics import HEALTH, POP
from voicepipe.observe.culprits import Seen, culprits

WELL = Seen(timed=0, late=[], late_count=0, networks=[], health=replace(HEALTH, down={}))


@pytest.mark.parametrize(
    ("kv_cache", "waiting", "says"),
    [
        (None, 0, ""),
        (0.85, 0, ""),
        (0.95, 0, "95% full, the next reply may wait"),
        (1.0, 3, "100% full, too full for the next reply (3 wait)"),
        (0.55, 5, "55% full, too full for the next reply (5 wait)"),  # a reply was taken out, or no prompt fits
        (0.07, 6, ""),  # as many replies are made as vllm.args.max_num_seqs lets in
    ],
)
def test_a_kv_cache_is_full_when_the_next_reply_has_no_room(kv_cache: float | None, waiting: float, says: str) -> None:
    named = culprits(replace(WELL, kv_cache=kv_cache, waiting=waiting), POP)
    assert [culprit.what for culprit in named] == (["kv_cache"] if says else [])
    assert all(says in culprit.says for culprit in named)
