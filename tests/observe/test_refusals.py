"""Refused calls are counted, and take no memory each."""

import tracemalloc
from typing import get_args

from voicepipe.base.errors import Reason
from voicepipe.call_api import DoorKind, Refusal
from voicepipe.observe.refusals import KEPT_S, STEP_S, RefusalCounts


def full(tenant: str) -> Refusal:
    return Refusal("full", "websocket", tenant, "front-desk", 503)


def test_they_are_counted_by_tenant_and_time() -> None:
    refusals = RefusalCounts()
    for at, tenant in ((1000.0, "acme"), (1004.0, "clinic"), (1009.9, "acme"), (1010.0, "acme"), (5000.0, "clinic")):
        refusals.add(full(tenant), at)
    assert (refusals.since(1000.0, "acme"), refusals.since(1000.0, None)) == ({"full": 3}, {"full": 5})
    assert (refusals.since(1010.0, "acme"), refusals.since(1010.0, None)) == ({"full": 1}, {"full": 2})
    assert refusals.since(5001.0 + STEP_S, None) == {} == refusals.since(0.0, "nobody")


def test_they_are_counted_by_reason() -> None:
    refusals = RefusalCounts()
    for refusal in (
        full("acme"), Refusal("late", "sip", "acme", "front-desk", 503), Refusal("late", "sip", "acme", "night", 503),
        Refusal("forbidden", "sip", status=403), Refusal("forbidden", "websocket", status=403),
    ):  # fmt: skip
        refusals.add(refusal, 1000.0)
    assert refusals.since(0.0, None) == {"full": 1, "late": 2, "forbidden": 2}
    assert refusals.since(0.0, "acme") == {"full": 1, "late": 2}, "strangers' are the operator's alone to see"


def test_strangers_cannot_make_it_grow() -> None:
    refusals = RefusalCounts()
    for reason in get_args(Reason):
        for door in get_args(DoorKind):
            refusals.add(Refusal(reason, door), 1_000_000.0)
    tracemalloc.start()
    try:
        for number in range(20_000):
            refusals.add(Refusal("forbidden", "sip", agent=f"guess {number}", status=number), 1_000_000.0 + number)
        assert tracemalloc.get_traced_memory()[0] < 20_000
    finally:
        tracemalloc.stop()


def test_counts_are_those_of_the_steps_asked_for() -> None:
    refusals = RefusalCounts()
    for second in range(0, 3 * KEPT_S, 7 * STEP_S):
        refusals.add(full("acme"), float(second))
        for ago in (0, STEP_S, 900, KEPT_S - STEP_S, KEPT_S, 2 * KEPT_S):
            steps = min(ago, KEPT_S) // STEP_S
            assert refusals.since(second - ago, None)["full"] == min(second // STEP_S, steps) // 7 + 1


def test_a_flood_takes_no_more_memory_than_a_few() -> None:
    refusals = RefusalCounts()
    tracemalloc.start()
    try:
        for number in range(100_000):
            refusals.add(full("acme"), 1_000_000.0 + number / 1000)
        assert tracemalloc.get_traced_memory()[0] < 20_000
    finally:
        tracemalloc.stop()
    assert refusals.since(0.0, "acme") == {"full": 100_000}


def test_a_tenant_that_was_refused_once_takes_no_memory_for_ever() -> None:
    refusals = RefusalCounts()
    tracemalloc.start()
    try:
        for number in range(1000):
            refusals.add(full(f"tenant {number}"), 1_000_000.0)
        refusals.add(full("acme"), 1_000_000.0 + KEPT_S + 2 * STEP_S)
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
    assert refusals.since(0.0, None) == {"full": 1}


def test_what_no_axis_shows_any_more_is_forgotten() -> None:
    refusals = RefusalCounts()
    refusals.add(full("acme"), 0.0)
    refusals.add(full("acme"), KEPT_S + 2.0 * STEP_S)
    assert refusals.since(0.0, None) == {"full": 1}
