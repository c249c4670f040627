"""What gets only a share of the calls: a version on trial, a PoP whose turns failed."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.directory.fleets import SIGNER
from tests.directory.reports import FRANKFURT, LONDON, TOKYO, VIRGINIA, report, seen
from voicepipe.call_api import Grant
from voicepipe.config.directory_config import CanaryConfig
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.call_shares import CallShares
from voicepipe.directory.directory import Directory
from voicepipe.directory.fleet_view import SeenPop
from voicepipe.directory.router import RankedPops, WantedCall, alternates, choose

NEW = CanaryConfig(share=0.1, version="2")
FRA, LHR = seen("fra", place=FRANKFURT, version="1"), seen("lhr", place=LONDON, version="1")
FRA2 = seen("fra2", place=FRANKFURT, version="2")


class Placing:
    """One directory after the other call, without its bus. `firsts`: the PoP of each."""

    def __init__(self, *canaries: CanaryConfig, seed: int = 7) -> None:
        self._lots = Random(seed)
        self.shares = CallShares(canaries, self._lots)
        self.firsts: list[str] = []

    def place(self, pops: Sequence[SeenPop], **asked: Any) -> RankedPops:
        limits = self.shares.limits(pops)
        wanted = WantedCall(kind="websocket", **{"place": FRANKFURT, **asked})
        choice = choose(pops, wanted, self._lots, limits)
        self.shares.settle(choice.competed, choice.spent, limits)
        self.firsts.append(choice.candidates[0].seen.pop)
        return choice

    def counts(self, calls: int, pops: Sequence[SeenPop], **asked: Any) -> Counter[str]:
        return Counter(self.place(pops, **asked).candidates[0].seen.pop for _ in range(calls))


@given(share=st.floats(0, 0.99), calls=st.integers(1, 300), seed=st.integers(0, 1000))
def test_of_n_calls_a_canary_gets_its_share_give_or_take_one_at_any_time(share: float, calls: int, seed: int) -> None:
    placing = Placing(CanaryConfig(share=share, version="2"), seed=seed)
    for number in range(1, calls + 1):
        placing.place([FRA, FRA2])
        got = placing.firsts.count("fra2")
        assert share * number - 1 - 1e-6 <= got <= share * number + 1 + 1e-6


def test_calls_that_come_as_regularly_as_its_turn_are_not_all_it_gets() -> None:
    placing = Placing(NEW)
    tenths = Counter(number % 10 for number in range(400) if placing.place([FRA, FRA2]).candidates[0].seen is FRA2)
    assert tenths.total() == 40 and max(tenths.values()) <= 12 and len(tenths) >= 8


def test_a_share_that_is_changed_is_counted_anew_and_others_are_not() -> None:
    other = CanaryConfig(share=0.5, pop="lhr")
    placing = Placing(NEW, other)
    placing.counts(95, [FRA, FRA2])
    placing.counts(10, [FRA, LHR])
    before = placing.shares.counts()
    placing.shares.change([NEW, other])
    assert placing.shares.counts() == before
    placing.shares.change([CanaryConfig(share=0.5, version="2"), other])
    raised, same = placing.shares.counts()
    assert (raised.took, raised.of) == (0, 0) and same == before[1]
    assert placing.counts(20, [FRA, FRA2])["fra2"] == 10


def test_all_pops_of_a_version_have_one_share_and_one_pop_may_have_its_own() -> None:
    new = [seen(f"new{number}", place=FRANKFURT, version="2") for number in range(4)]
    counts = Placing(NEW).counts(100, [FRA, *new])
    assert counts["fra"] == 90
    assert Placing(CanaryConfig(share=0.25, pop="new3")).counts(100, [FRA, new[3], LHR])["new3"] == 25


def test_of_limits_that_fit_the_first_one_counts() -> None:
    assert Placing(CanaryConfig(share=0.5, pop="fra2"), NEW).counts(100, [FRA, FRA2])["fra2"] == 50


def test_a_call_for_which_a_canary_would_be_too_far_off_is_none_of_its_share() -> None:
    placing = Placing(CanaryConfig(share=0.5, version="2"))
    far = seen("iad2", place=VIRGINIA, version="2")
    assert placing.counts(50, [FRA, far]) == {"fra": 50}
    assert placing.shares.counts()[0].of == 0
    assert placing.counts(10, [FRA, far], rtt_ms={"fra": 90.0, "iad2": 5.0}) == {"fra": 5, "iad2": 5}, (
        "both are in time from there"
    )
    assert placing.shares.counts()[0].of == 10


def test_a_canary_comes_after_others_that_are_in_time_and_before_those_that_are_not() -> None:
    placing = Placing(NEW)
    order = [candidate.seen.pop for candidate in placing.place([FRA, FRA2, LHR]).candidates]
    assert order == ["fra", "lhr", "fra2"]
    nrt = seen("nrt", place=TOKYO, version="1")
    order = [candidate.seen.pop for candidate in placing.place([FRA, FRA2, nrt]).candidates]
    assert order == ["fra", "fra2", "nrt"]


def test_a_canary_is_better_than_no_place_or_a_late_answer() -> None:
    placing = Placing(NEW)
    full, late = seen("fra", status="full", version="1"), seen("fra", predicted_ms=900.0, version="1")
    assert placing.counts(10, [full, FRA2]) == {"fra2": 10}
    assert placing.counts(10, [late, FRA2]) == {"fra2": 10}
    assert placing.shares.counts()[0].of == 0, "the share starts as if those had not been"
    assert placing.counts(9, [FRA, FRA2])["fra2"] <= 1


def test_what_was_not_spent_is_not_saved_up() -> None:
    placing = Placing(CanaryConfig(share=0.1, version="2"), CanaryConfig(share=0.5, pop="lhr"))
    failed = seen("fra2", version="2", share=0.01)
    assert placing.counts(99, [FRA, failed])["fra2"] <= 1, "its own limit is the tighter one"
    assert placing.counts(10, [FRA, FRA2])["fra2"] <= 2


def test_once_every_pop_is_of_the_version_nothing_is_held_back() -> None:
    near = seen("fra3", place=FRANKFURT, version="2")
    assert Placing(NEW).counts(50, [FRA2, near])["fra2"] == 50
    recovering = seen("fra3", place=FRANKFURT, version="2", share=0.05)
    assert Placing(NEW).counts(100, [FRA2, recovering]) == {"fra2": 95, "fra3": 5}


def test_a_pop_whose_turns_fail_is_a_last_resort() -> None:
    failing = seen("fra", share=0.0)
    placing = Placing()
    assert placing.counts(19, [seen("fra", share=0.05), LHR])["lhr"] >= 18
    assert placing.counts(50, [failing, LHR]) == {"lhr": 50}, "whatever is left of its share"
    nrt = seen("nrt", place=TOKYO, zone="jp")
    assert Placing().counts(20, [failing, nrt]) == {"nrt": 20}
    assert Placing().counts(20, [failing, nrt], region="fra") == {"nrt": 20}
    assert Placing().counts(20, [failing, nrt], zone="eu") == {"fra": 20}
    assert Placing().counts(20, [failing]) == {"fra": 20}


def test_it_gets_calls_back_by_degrees() -> None:
    placing = Placing()
    by_share = [placing.counts(100, [LHR, seen("fra", share=share)])["fra"] for share in (0.0, 0.05, 0.1, 0.2, 1.0)]
    assert by_share == [0, 5, 10, 20, 100]


def test_a_route_to_a_region_keeps_the_share() -> None:
    alone = seen("fra2", place=FRANKFURT, region="eu", version="2")
    assert Placing(NEW).counts(100, [LHR, alone], region="eu") == {"lhr": 90, "fra2": 10}
    assert Placing(NEW).counts(100, [seen("fra", region="eu"), alone, LHR], region="eu") == {"fra": 90, "fra2": 10}
    outside = seen("fra2", place=FRANKFURT, region="us", version="2")
    assert Placing(NEW).counts(100, [seen("fra", region="eu"), outside], region="eu") == {"fra": 100}


def test_a_nearest_pop_that_fills_shares_with_none_that_is_held_back() -> None:
    filling = seen("fra", slots=4, calls=3, version="1")
    assert Placing(NEW).counts(100, [filling, FRA2]) == {"fra": 90, "fra2": 10}


def test_who_is_turned_away_is_sent_to_a_pop_of_the_same_version_and_to_none_whose_turns_failed() -> None:
    recovering, failing = seen("one", version="1", share=0.4), seen("two", version="1", share=0.0)
    assert [other.pop for other in alternates([FRA2, LHR, recovering, failing], FRA.condition)] == ["lhr", "fra2"]


@pytest.mark.parametrize("directories", [1, 3])
async def test_of_a_thousand_calls_hardly_more_than_the_share_goes_to_a_canary_at_any_time(directories: int) -> None:
    bus, lots = MemoryBus(), Random(3)
    made = [Directory(bus, SIGNER, Random(number), lambda: 1000.0, [NEW]) for number in range(directories)]
    for directory in made:
        for pop, version in (("fra", "1"), ("fra2", "2"), ("lhr", "1")):
            condition: dict[str, Any] = {
                "version": version,
                "slots": 2000,
                "place": LONDON if pop == "lhr" else FRANKFURT,
            }
            directory.take(BusMessage(f"vp.pop.{pop}.report", msgspec.json.encode(report(**condition))))
    wanted, went = WantedCall(kind="websocket", place=FRANKFURT), list[str]()
    for number in range(1, 1001):
        placement = await lots.choice(made).place(wanted, Grant(id="", tenant="acme"))
        went.append(placement.offers[0].pop)
        assert went.count("fra2") <= 0.1 * number + directories
        assert number < 100 or went.count("fra2") <= 0.12 * number
    assert 100 - directories <= went.count("fra2") <= 100 + directories
