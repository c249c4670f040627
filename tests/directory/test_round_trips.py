"""What is kept of round trips that PoPs tell, and for how long."""

from random import Random

import pytest

from voicepipe.directory import round_trips
from voicepipe.directory.round_trips import KEPT_S, TRIES, TRYING_S, NetworkTrips, RoundTrips

HOME, OFFICE = "198.51.100.0/24", "2001:db8:7::/48"


def test_a_round_trip_is_kept_for_each_network_and_pop() -> None:
    trips = RoundTrips()
    trips.heard(HOME, "fra", 20.0, 0.0)
    trips.heard(HOME, "iad", 110.0, 1.0)
    trips.heard(OFFICE, "fra", 31.0, 2.0)
    assert trips.of(HOME, 3.0).ms == {"fra": 20.0, "iad": 110.0}
    assert trips.of(OFFICE, 3.0).ms == {"fra": 31.0}
    assert trips.of("203.0.113.0/24", 3.0).ms == {}


@pytest.mark.parametrize("seed", range(20))
def test_after_three_calls_it_is_within_10_ms_of_the_true_one(seed: int) -> None:
    lots, trips = Random(seed), RoundTrips()
    true_ms = lots.uniform(5, 250)
    for call in range(3):
        for again in (False, True):
            trips.heard(HOME, "fra", true_ms + lots.uniform(-4, 12), call, again=again)
    assert abs(trips.of(HOME, 3.0).ms["fra"] - true_ms) <= 10


def test_it_is_forgotten_ten_minutes_after_it_was_heard_last() -> None:
    trips = RoundTrips()
    trips.heard(HOME, "fra", 20.0, 0.0)
    trips.heard(HOME, "iad", 110.0, 300.0)
    assert trips.of(HOME, KEPT_S - 1).ms == {"fra": 20.0, "iad": 110.0}
    assert trips.of(HOME, KEPT_S).ms == {"iad": 110.0}
    trips.heard(HOME, "fra", 90.0, KEPT_S + 1)
    assert trips.of(HOME, KEPT_S + 1).ms["fra"] == 90.0, "it was averaged with one that is forgotten"


def test_a_network_that_moved_is_known_by_two_calls_and_the_rest_of_it_is_forgotten() -> None:
    trips = RoundTrips()
    for _ in range(2):
        trips.heard(HOME, "fra", 20.0, 0.0)
    trips.heard(HOME, "iad", 110.0, 0.0)
    trips.heard(OFFICE, "iad", 95.0, 0.0)
    trips.heard(HOME, "fra", 120.0, 1.0)
    assert trips.of(HOME, 1.0).ms == {"fra": 20.0, "iad": 110.0}, "one call is believed"
    trips.heard(HOME, "fra", 125.0, 2.0)
    assert trips.of(HOME, 2.0).ms == {"fra": 125.0}
    assert trips.of(OFFICE, 2.0).ms == {"iad": 95.0}


def test_one_call_on_a_bad_line_changes_nothing() -> None:
    trips = RoundTrips()
    trips.heard(HOME, "fra", 20.0, 0.0)
    trips.heard(HOME, "fra", 300.0, 1.0)
    trips.heard(HOME, "fra", 290.0, 2.0, again=True)
    assert trips.of(HOME, 2.0).ms == {"fra": 20.0}
    trips.heard(HOME, "fra", 21.0, 3.0)
    trips.heard(HOME, "fra", 305.0, 4.0)
    assert 19 < trips.of(HOME, 4.0).ms["fra"] < 22, "they did not come in a row"


def test_calls_that_disagree_with_each_other_are_no_move() -> None:
    trips = RoundTrips()
    for at, ms in enumerate([20.0, 20.0, 200.0, 90.0, 400.0, 60.0]):
        trips.heard(HOME, "fra", ms, at)
    assert trips.of(HOME, 5.0).ms == {"fra": 20.0}


def test_of_too_many_networks_those_go_that_were_heard_of_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_trips, "TRIPS", 3)
    trips = RoundTrips()
    for number in range(3):
        trips.heard(f"10.0.{number}.0/24", "fra", 20.0, number)
    trips.heard("10.0.0.0/24", "fra", 20.0, 3.0)
    trips.heard("10.0.3.0/24", "fra", 20.0, 4.0)
    assert [trip.network for trip in trips.newest(5.0, 9)] == ["10.0.3.0/24", "10.0.0.0/24", "10.0.2.0/24"]
    assert [trip.network for trip in trips.newest(5.0, 1)] == ["10.0.3.0/24"]


def test_a_network_tries_pops_one_at_a_time_and_few_in_all() -> None:
    trips = RoundTrips()
    assert not trips.may_try(HOME, 0.0), "nothing is known of it that would contradict its place"
    trips.heard(HOME, "fra", 150.0, 0.0)
    now = 1.0
    for number in range(int(TRIES.burst)):
        assert trips.may_try(HOME, now)
        trips.tries(HOME, f"pop{number}", now)
        assert not trips.may_try(HOME, now + 1), "one is under way"
        trips.heard(HOME, f"pop{number}", 150.0, now + 2)
        now += 3
    assert not trips.may_try(HOME, now)
    assert not trips.may_try(HOME, now + 600.0)
    assert trips.may_try(HOME, now + 1 / TRIES.per_s)


def test_a_try_whose_call_never_came_is_not_waited_for() -> None:
    trips = RoundTrips()
    trips.heard(HOME, "fra", 150.0, 0.0)
    trips.tries(HOME, "iad", 0.0)
    trips.heard(HOME, "fra", 150.0, 1.0)
    assert not trips.may_try(HOME, TRYING_S - 1)
    assert trips.may_try(HOME, TRYING_S)


def test_what_a_single_call_tells_is_unsure_and_the_shorter_of_two_is_believed() -> None:
    """A bad line makes a round trip longer, never shorter."""
    trips = RoundTrips()
    trips.heard(HOME, "fra", 300.0, 0.0)
    assert trips.of(HOME, 0.0) == NetworkTrips({"fra": 300.0}, frozenset({"fra"}))
    trips.heard(HOME, "fra", 180.0, 1.0, again=True)
    assert trips.of(HOME, 1.0) == NetworkTrips({"fra": 180.0}, frozenset({"fra"})), "of the same call"
    trips.heard(HOME, "fra", 20.0, 2.0)
    assert trips.of(HOME, 2.0) == NetworkTrips({"fra": 20.0}, frozenset({"fra"}))
    trips.heard(HOME, "fra", 22.0, 3.0)
    assert trips.of(HOME, 3.0).unsure == frozenset()


def test_a_network_that_calls_no_more_takes_no_room() -> None:
    trips = RoundTrips()
    for number in range(5):
        trips.heard(f"8.8.{number}.0/24", "fra", 20.0, 0.0)
    trips.heard(HOME, "fra", 20.0, KEPT_S)
    assert list(trips._networks) == [HOME] and trips._trips == 1


def test_questions_without_calls_cost_a_network_no_tries() -> None:
    trips, now = RoundTrips(), 0.0
    trips.heard(HOME, "fra", 150.0, now)
    for _ in range(20):
        assert trips.may_try(HOME, now)
        trips.tries(HOME, "iad", now)
        now += TRYING_S
        trips.heard(HOME, "fra", 150.0, now)
