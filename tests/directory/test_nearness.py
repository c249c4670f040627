"""How far PoPs are taken to be, and where calls go that geography misplaces."""

from random import Random
from typing import Any

import pytest

from tests.directory import globe
from tests.directory.reports import FRANKFURT, LONDON, TOKYO, VIRGINIA, seen
from voicepipe.base.places import ACCESS_MS, apart_ms, estimated_rtt_ms
from voicepipe.directory.nearness import WORTH_MS, Trip, Whereabouts, trips
from voicepipe.directory.round_trips import TRIES

ALL = [seen("fra", place=FRANKFURT), seen("lhr", place=LONDON), seen("iad", place=VIRGINIA), seen("nrt", place=TOKYO)]
CALLERS = 500


def found(**known: Any) -> dict[str, Trip]:
    return dict(trips(ALL, Whereabouts(**{"place": FRANKFURT, "tries": True, **known})))


def test_what_was_probed_comes_before_what_was_learned_and_that_before_the_distance() -> None:
    near = found(rtt_ms={"fra": 11.0}, learned_ms={"fra": 29.0, "lhr": 33.0})
    assert near["fra"] == (11.0, "probe")
    assert near["lhr"] == (33.0, "learned")
    assert near["iad"].by == "distance"


def test_a_slow_line_is_slow_to_every_pop() -> None:
    """Else each of its calls would go to another PoP, the nearest of those that are not known."""
    slow_ms = estimated_rtt_ms(FRANKFURT, FRANKFURT) + 30
    near = found(learned_ms={"fra": slow_ms})
    assert near["lhr"].by == "distance"
    assert near["lhr"].ms == pytest.approx(estimated_rtt_ms(FRANKFURT, LONDON) + 30)


def test_what_is_reckoned_too_long_is_shorter_everywhere() -> None:
    """Else a network stayed for good with the PoP that it knows, though another is nearer."""
    reckoned = estimated_rtt_ms(FRANKFURT, LONDON)
    assert found(learned_ms={"fra": 12.0})["lhr"].ms == pytest.approx(reckoned - 18.0)
    assert found(learned_ms={"fra": 0.1})["lhr"].ms == pytest.approx(reckoned - 29.9)
    assert found(learned_ms={"lhr": 17.0})["fra"].ms < 17.0  # type: ignore[operator]


@pytest.mark.parametrize(
    ("place", "learned_ms"),
    [(TOKYO, {"nrt": 240.0}), (TOKYO, {"fra": 18.0}), (None, {"nrt": 240.0})],
    ids=["too long", "shorter than light takes", "nobody says"],
)
def test_a_place_that_is_contradicted_counts_for_nothing(place: Any, learned_ms: dict[str, float]) -> None:
    near = found(place=place, learned_ms=learned_ms)
    assert {trip.by for trip in near.values()} == {"learned", "guess"}


def test_a_guess_is_about_the_least_that_the_learned_ones_allow_and_without_tries_the_most() -> None:
    tried = found(place=TOKYO, learned_ms={"nrt": 240.0})
    assert tried["fra"].ms == pytest.approx(ACCESS_MS + 225.0 - 1.1 * apart_ms(TOKYO, FRANKFURT) + 10.0 + WORTH_MS)
    settled = found(place=TOKYO, learned_ms={"nrt": 240.0}, tries=False)
    assert settled["fra"].ms is not None and settled["fra"].ms > 240.0 + apart_ms(TOKYO, FRANKFURT)


def test_a_pop_without_a_place_is_unknown_until_it_is_learned() -> None:
    pops = [*ALL, seen("new", place=None)]
    for place in (FRANKFURT, TOKYO, None):
        near = trips(pops, Whereabouts(place=place, learned_ms={"nrt": 240.0}, tries=True))
        assert near["new"] == (None, "unknown")
    assert trips(pops, Whereabouts(place=FRANKFURT, learned_ms={"new": 40.0}, tries=True))["new"] == (40.0, "learned")


def too_far_ms(
    calls: int, access_ms: tuple[float, float], *, least_ms: float = -1.0, **world: Any
) -> list[list[float]]:
    """By how much too far the calls of callers went whose first one went too far by more than `least_ms`."""
    lots = Random(20)
    seen: list[list[float]] = []
    while len(seen) < CALLERS:
        one = globe.caller(lots, access_ms, **world)
        found = [one.too_far_ms(pop) for pop in one.calls(calls, lots)]
        if found[0] > least_ms:
            seen.append(found)
    return seen


@pytest.mark.parametrize(
    ("stretch", "fourth", "sixth"), [((0.9, 1.1), 0.75, 0.88), ((0.65, 0.8), 0.65, 0.82)],
    ids=["as reckoned", "straighter cables"],
)  # fmt: skip
def test_callers_whom_geography_misplaces_are_at_the_right_pop_after_a_few_calls(
    stretch: tuple[float, float], fourth: float, sixth: float
) -> None:
    """On nine PoPs all over the globe, by callers anywhere who say that they are anywhere else. With fewer than four
    calls a place on a globe cannot be told for certain: two circles meet at two places. And one more is spent to be
    certain of the first."""
    misplaced = too_far_ms(6, (5, 60), lies=True, least_ms=50.0, stretch=stretch)
    shares = [globe.right(misplaced, call) for call in range(6)]
    print("right PoP, by call:", shares)
    assert shares[0] == 0.0 and shares[3] >= fourth and shares[5] >= sixth


def test_one_bad_call_is_tried_and_then_forgotten() -> None:
    """The first call from Frankfurt took 120 ms: the next one tries, and the one after is at home."""
    once = found(learned_ms={"fra": 120.0}, unsure=["fra"])
    assert {trip.by for trip in once.values()} == {"learned", "guess"}
    under_way = found(learned_ms={"fra": 120.0}, unsure=["fra"], tries=False)
    assert under_way["fra"] == (estimated_rtt_ms(FRANKFURT, FRANKFURT), "distance")
    assert {trip.by for trip in found(learned_ms={"fra": 120.0}).values()} == {"learned", "guess"}, "two calls agree"


def test_two_pops_that_are_as_near_are_both_learned() -> None:
    near = found(learned_ms={"fra": 20.0, "lhr": 20.0})
    assert near["fra"] == near["lhr"] == (20.0, "learned")


def test_nobody_is_at_two_places() -> None:
    """So near to both, light does not get: several callers stand behind one address, or somebody tells lies."""
    near = found(learned_ms={"fra": 0.3, "nrt": 0.2})
    assert {trip.by for trip in near.values()} == {"distance"}


def test_callers_whose_first_call_had_a_bad_line_do_not_go_astray() -> None:
    for slower_ms in (80.0, 150.0, 300.0):
        calls = too_far_ms(20, (5, 60), lies=False, first_slower_ms=slower_ms)
        wrong = [sum(ms > globe.RIGHT_MS for ms in one) for one in calls]
        print(f"wrong calls of 20, the first {slower_ms:g} ms slower:", sum(wrong) / CALLERS)
        assert sum(wrong) / CALLERS <= 3.0


def test_callers_who_say_where_they_are_are_sent_there() -> None:
    """Those whose own line is slow are far from every PoP, which is how one shows who is somewhere else: they go
    astray, but for a few calls only."""
    usual = too_far_ms(20, (5, 60), lies=False)
    wrong = [sum(ms > globe.RIGHT_MS for ms in one) for one in usual]
    print("wrong calls of 20, usual lines:", sum(wrong) / CALLERS)
    assert sum(wrong) / CALLERS <= 0.5
    slow = too_far_ms(20, (90, 150), lies=False)
    wrong = [sum(ms > globe.RIGHT_MS for ms in one) for one in slow]
    print("wrong calls of 20, slow lines:", sum(wrong) / CALLERS, max(wrong))
    assert sum(wrong) / CALLERS <= TRIES.burst + 0.5
