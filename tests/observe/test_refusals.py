"""Refused calls are counted, and take no memory each."""

import tracemalloc

from voicepipe.observe.refusals import KEPT_S, STEP_S, Refusals


def test_they_are_counted_by_tenant_and_time() -> None:
    refusals = Refusals()
    for at, tenant in ((1000.0, "acme"), (1004.0, "clinic"), (1009.9, "acme"), (1010.0, "acme"), (5000.0, "clinic")):
        refusals.add(tenant, at)
    assert (refusals.since(1000.0, "acme"), refusals.since(1000.0, None)) == (3, 5)
    assert (refusals.since(1010.0, "acme"), refusals.since(1010.0, None)) == (1, 2)
    assert refusals.since(5001.0 + STEP_S, None) == 0 == refusals.since(0.0, "nobody")


def test_a_flood_takes_no_more_memory_than_a_few() -> None:
    refusals = Refusals()
    tracemalloc.start()
    try:
        for number in range(100_000):
            refusals.add("acme", 1_000_000.0 + number / 1000)
        assert tracemalloc.get_traced_memory()[0] < 20_000
    finally:
        tracemalloc.stop()
    assert refusals.since(0.0, "acme") == 100_000


def test_what_no_axis_shows_any_more_is_forgotten() -> None:
    refusals = Refusals()
    refusals.add("acme", 0.0)
    refusals.add("acme", KEPT_S + 2.0 * STEP_S)
    assert refusals.since(0.0, None) == 1
