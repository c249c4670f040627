"""Who is told, and hung up, for what the guards drop; honest peers never are."""

from itertools import accumulate

import pytest

from voicepipe.ingress.webrtc.drop_warnings import (
    END_S,
    IN_A_ROW,
    LOOK_S,
    MANY,
    NOTIFIED_EVERY_S,
    DropVerdict,
    DropWarnings,
)
from voicepipe.rtp.transport import DropCounts

NOTHING = DropCounts(0, 0, 0, 0)
KINDS = list(DropCounts._fields)


def looked(counts: list[DropCounts], *, moves: bool = False) -> list[DropVerdict]:
    """What comes of looks between which so much was dropped; `moves`: SCTP goes on meanwhile."""
    conduct = DropWarnings()
    sums = accumulate(counts, lambda a, b: DropCounts(*(x + y for x, y in zip(a, b, strict=True))))
    return [conduct.look(drops, n if moves else 7, n * LOOK_S) for n, drops in enumerate(sums)]


def codes(verdicts: list[DropVerdict]) -> list[str]:
    return [error.code for verdict in verdicts for _, error in verdict.errors]


def only(kind: str, count: int) -> DropCounts:
    return NOTHING._replace(**{kind: count})


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_on_is_told_once_and_again_after_a_while(kind: str) -> None:
    much = only(kind, getattr(MANY, kind))
    verdicts = looked([much] * (IN_A_ROW + 2 + int(NOTIFIED_EVERY_S / LOOK_S)))
    assert [bool(verdict.errors) for verdict in verdicts].count(True) == 2
    assert not codes(looked([only(kind, getattr(MANY, kind) - 1)] * 100)), "what is less than that is not"


@pytest.mark.parametrize("kind", KINDS)
def test_a_burst_after_a_stall_is_nobodys_fault(kind: str) -> None:
    minute = only(kind, 3000)
    assert not codes(looked([NOTHING, minute, NOTHING, NOTHING, minute, only(kind, 500), NOTHING]))


def test_a_peer_that_is_slowed_and_goes_on_is_not_stuck() -> None:
    much = only("unplaced", 500)
    assert not codes(looked([much] * 100, moves=True))
    assert codes(looked([much] * 10)) == ["data_channel_stuck"]


@pytest.mark.parametrize("kind", KINDS)
def test_only_a_useless_data_channel_ends_a_call(kind: str) -> None:
    ended = [verdict.is_over for verdict in looked([only(kind, 1000)] * (2 + int(END_S / LOOK_S)))]
    assert any(ended) == (kind in ("lies", "unplaced"))
    assert not any(ended[: int(END_S / LOOK_S) - 1])
