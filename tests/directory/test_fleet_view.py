"""Leases of PoPs, on the directory's clock."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.directory.reports import report
from voicepipe.directory.fleet_view import FEWEST, FORGOTTEN_S, KNOWN_S, LEASE_S, PENDING_S, SETTLES_S, FleetView


def names(view: FleetView, now: float) -> list[str]:
    return [seen.pop for seen in view.alive(now) if not seen.silent]


def hears(view: FleetView, *pops: str, since: int = 0, until: int = 10) -> None:
    """A report of each, once a second."""
    for second in range(since, until):
        for pop in pops:
            view.heard(pop, report(second), 100.0 + second)


def test_a_pop_is_alive_until_its_lease_is_over() -> None:
    view = FleetView()
    view.heard("fra", report(), 100.0)
    assert names(view, 100.0 + LEASE_S - 0.1) == ["fra"]
    assert names(view, 100.0 + LEASE_S) == []


def test_what_one_report_overtook_does_not_count() -> None:
    view = FleetView()
    assert view.heard("fra", report(2, calls=2), 100.0)
    assert not view.heard("fra", report(1, calls=1), 100.1)
    assert view.alive(100.2)[0].condition.calls == 2


def test_a_report_that_lay_about_renews_no_lease() -> None:
    """A PoP stops for ten seconds; what it had sent before comes only then. So it is after a cut of the network."""
    view = FleetView()
    hears(view, "fra", until=5)
    assert view.heard("fra", report(5), 100.0 + 15)
    assert names(view, 100.0 + 15) == []
    view.heard("fra", report(15), 100.0 + 15.1)
    assert names(view, 100.0 + 15.1) == ["fra"]


def test_a_pop_whose_clock_stood_still_is_believed_again() -> None:
    view = FleetView()
    hears(view, "fra", until=5)
    for second in range(5, 200):
        view.heard("fra", report(second), 100.0 + second + 20)  # A virtual machine that was paused for 20 s.
    assert names(view, 100.0 + 220) == ["fra"]


def test_a_run_that_was_replaced_is_a_ghost_when_it_wakes() -> None:
    view = FleetView()
    view.heard("fra", report(7, epoch=1000, calls=9), 100.0)
    view.heard("fra", report(0, epoch=2000), 103.0)
    assert not view.heard("fra", report(8, epoch=1000, calls=9), 103.5)
    assert view.alive(103.5)[0].report.epoch == 2000


def test_a_run_whose_clock_was_set_back_is_taken_once_the_one_before_it_is_gone() -> None:
    view = FleetView()
    view.heard("fra", report(7, epoch=2000), 100.0)
    assert not view.heard("fra", report(0, epoch=1000), 101.0)
    assert view.heard("fra", report(5, epoch=1000), 100.0 + LEASE_S)
    assert names(view, 100.0 + LEASE_S) == ["fra"]


def test_a_pop_that_says_goodbye_is_gone_at_once_and_no_other_run_of_it() -> None:
    view = FleetView()
    view.heard("fra", report(epoch=2000), 100.0)
    view.left("fra", 1000, 100.0)
    assert names(view, 100.0) == ["fra"] and view.gone(100.0) == set()
    view.left("fra", 2000, 100.0)
    assert names(view, 100.0) == []


def test_a_pop_that_said_goodbye_is_remembered_for_a_day_unless_it_comes_again() -> None:
    view = FleetView()
    for pop in ("fra", "lhr"):
        view.heard(pop, report(epoch=1000), 100.0)
        view.left(pop, 1000, 100.0)
    assert view.gone(100.0 + 3600) == {"fra", "lhr"}
    view.heard("fra", report(epoch=2000), 100.0 + 3600)
    assert view.gone(100.0 + 3600) == {"lhr"}
    assert view.gone(100.0 + FORGOTTEN_S) == set()


def test_assigned_calls_are_on_their_way_until_they_begin_or_go_elsewhere() -> None:
    view = FleetView()
    view.heard("fra", report(0), 100.0)
    for at, call in enumerate(("a", "b", "c")):
        view.assigned("fra", call, 100.0 + at / 10)
    assert view.alive(100.5)[0].pending == 3
    view.heard("fra", report(1, calls=1, begun=("b",)), 101.0)
    assert view.alive(101.0)[0].pending == 2
    assert view.alive(100.1 + PENDING_S)[0].pending == 1
    view.assigned("nowhere", "d", 100.0)


def test_pops_that_fall_silent_together_mean_that_the_directory_is_cut_off() -> None:
    view = FleetView()
    pops = ("fra", "iad", "nrt")
    hears(view, *pops)
    now = 109.0 + LEASE_S
    assert view.cut_off(now)
    assert [seen.silent for seen in view.alive(now)] == [True] * 3
    assert view.alive(109.0 + KNOWN_S) == []


def test_pops_that_fall_silent_one_after_another_are_gone() -> None:
    view = FleetView()
    for number, pop in enumerate(("fra", "iad", "nrt")):
        hears(view, pop, until=10 + 4 * number)
    now = 117.0 + LEASE_S
    assert not view.cut_off(now)
    assert view.alive(now) == []


def test_of_few_pops_none_is_presumed_to_live() -> None:
    view = FleetView()
    hears(view, *("fra", "iad")[: FEWEST - 1])
    assert view.alive(109.0 + LEASE_S) == []


def test_one_that_died_earlier_does_not_hide_that_the_directory_is_cut_off() -> None:
    view = FleetView()
    hears(view, "lhr", until=5)
    hears(view, "fra", "iad", "nrt", until=20)
    now = 119.0 + LEASE_S
    assert view.cut_off(now)


def test_whoever_knows_that_the_bus_is_lost_goes_on_with_what_was_heard_last() -> None:
    view = FleetView()
    hears(view, "fra")
    now = 109.0 + LEASE_S
    assert view.alive(now) == []
    assert [(seen.pop, seen.silent) for seen in view.alive(now, deaf=True)] == [("fra", True)]


def test_a_bus_that_is_lost_for_long_takes_no_pop_away_but_those_that_had_died_before() -> None:
    view = FleetView()
    hears(view, "lhr", until=4)
    hears(view, "fra", "iad", until=20)
    later = 119.0 + 30 * KNOWN_S
    assert view.alive(later) == []
    assert [seen.pop for seen in view.alive(later, deaf=True)] == ["fra", "iad"]


def test_once_reports_come_again_there_is_time_for_all_of_them() -> None:
    view = FleetView()
    hears(view, "fra", "iad", until=20)
    found = 119.0 + 10 * KNOWN_S
    view.heard("fra", report(620), found)
    assert [(seen.pop, seen.silent) for seen in view.alive(found + 1)] == [("fra", False), ("iad", True)]
    assert [seen.pop for seen in view.alive(found + SETTLES_S)] == ["fra"]


def test_a_directory_that_has_just_begun_takes_nobody_for_alive_who_is_not() -> None:
    view = FleetView()
    view.heard("fra", report(), 100.0)
    assert view.alive(101.0) and view.alive(100.0 + LEASE_S) == []


steps = st.lists(st.tuples(st.sampled_from(["fra", "iad"]), st.integers(1, 3), st.integers(0, 30), st.floats(0, 3)))


@given(steps)
def test_whatever_comes_a_run_never_goes_back_and_nobody_lives_on_old_reports(
    coming: list[tuple[str, int, int, float]],
) -> None:
    view, now, told = FleetView(), 100.0, dict[str, list[tuple[int, int]]]()
    heard_at = dict[str, float]()
    for pop, epoch, seq, passed in coming:
        now += passed
        if view.heard(pop, report(seq, epoch=epoch), now):
            told.setdefault(pop, []).append((epoch, seq))
            heard_at[pop] = now
        for seen in view.alive(now):
            assert 0 <= seen.age_s
            assert seen.silent or now - heard_at[seen.pop] < LEASE_S
    for reports in told.values():
        assert all(before[1] < after[1] for before, after in pairwise(reports) if before[0] == after[0])


def test_operators_are_told_of_a_silent_pop_for_a_day_and_not_of_one_that_said_goodbye() -> None:
    view = FleetView()
    for pop in ("fra", "iad", "lhr"):
        view.heard(pop, report(), 100.0)
    view.left("lhr", report().epoch, 100.0)
    view.heard("fra", report(1), 101.0)
    told = {seen.pop: seen.silent for seen in view.heard_of(101.0 + LEASE_S - 0.5)}
    assert told == {"fra": False, "iad": True}
    assert [seen.silent for seen in view.heard_of(101.0 + 3600)] == [True, True]
    assert view.heard_of(101.0 + FORGOTTEN_S) == []
