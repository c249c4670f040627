"""Calls take turns at an engine, however much each of them has waiting."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from voicepipe.base.round_robin import LATER, Ring, RoundRobin, owned_by, owner


def test_what_is_asked_within_is_the_calls() -> None:
    assert owner() == ""
    with owned_by("a"):
        with owned_by("b"):
            assert owner() == "b"
        assert owner() == "a"
    assert owner() == ""


async def test_a_task_that_is_made_within_stays_the_calls() -> None:
    async def whose() -> str:
        await asyncio.sleep(0)
        return owner()

    with owned_by("a"):
        task = asyncio.create_task(whose())
    assert await task == "a"


def ring(items: str) -> Ring[str]:
    """Each item's owner is its letter: "a1 a2 b1"."""
    made = Ring[str]()
    for item in items.split():
        made.put(item, item[0])
    return made


def drained(waiting: Ring[str] | RoundRobin[str]) -> str:
    return " ".join(iter(waiting.pop, None))


def test_owners_take_turns_and_their_items_keep_their_order() -> None:
    assert drained(ring("a1 a2 a3 b1 c1 c2")) == "a1 b1 c1 a2 c2 a3"


def test_an_item_is_in_it_once() -> None:
    one = ring("a1 a2 a1")
    assert len(one) == one.of("a") == 2 and one.of("b") == 0
    assert "a1" in one and "b1" not in one
    assert drained(one) == "a1 a2" and len(one) == 0


def test_what_is_removed_does_not_come_and_its_owner_is_told() -> None:
    one = ring("a1 a2 b1")
    assert one.remove("a1") == "a" and one.remove("a1") is None
    assert drained(one) == "a2 b1"


def test_who_may_not_is_passed_over_and_keeps_their_turn() -> None:
    one = ring("a1 b1 c1")
    assert one.pop(lambda owner: owner != "a") == "b1"
    assert drained(one) == "a1 c1"
    assert ring("a1").pop(lambda owner: False) is None


@given(st.lists(st.sampled_from("abc"), max_size=30))
def test_nobody_waits_for_more_than_one_item_of_each_other(owners: list[str]) -> None:
    one = ring(" ".join(f"{owner}{index}" for index, owner in enumerate(owners)))
    order = drained(one).split()
    assert sorted(order) == sorted(f"{owner}{index}" for index, owner in enumerate(owners))
    waiting = {owner: owners.count(owner) for owner in set(owners)}
    first_round = order[: len(waiting)]
    assert {item[0] for item in first_round} == set(waiting)


def test_what_is_urgent_goes_first_but_for_one_in_so_many() -> None:
    fair = RoundRobin[str]()
    for number in range(8):
        fair.put(f"urgent{number}", "a", urgent=True)
    fair.put("other0", "b")
    fair.put("other1", "b")
    assert len(fair) == 10 and fair.of("a") == 8
    order = drained(fair).split()
    assert LATER == 4 and [order.index("other0"), order.index("other1")] == [3, 7]


def test_what_waits_can_become_urgent() -> None:
    fair = RoundRobin[str]()
    fair.put("a1", "a")
    fair.put("b1", "b")
    fair.put("b1", "b", urgent=True)
    fair.put("b1", "b")
    assert drained(fair) == "b1 a1"


def test_what_is_removed_comes_from_neither_ring() -> None:
    fair = RoundRobin[str]()
    fair.put("a1", "a", urgent=True)
    fair.put("a2", "a")
    fair.remove("a1")
    fair.remove("a2")
    assert len(fair) == 0 and fair.pop() is None
