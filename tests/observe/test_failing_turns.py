"""A PoP whose turns fail wants no calls, and then more by degrees."""

from random import Random

import pytest

from tests.directory.reports import seen
from voicepipe.conversation.events import ReplyDone
from voicepipe.conversation.timing import TurnSummary
from voicepipe.directory.call_shares import CallShares
from voicepipe.observe.call_followers import CallFacts
from voicepipe.observe.failing_turns import (
    EVIDENCE,
    FIRST,
    FORGIVEN_S,
    LONGEST_PAUSE_S,
    PAUSE_S,
    STEP_S,
    WINDOW_S,
    FailingTurns,
)
from voicepipe.observe.last_turns import AskedTurn, full_turn


class Site:
    """A PoP's turns; `now` is set by the test."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.failing = FailingTurns(lambda: self.now)

    def turn(
        self, failed: bool, call: str = "one", agent: str = "desk", tenant: str = "acme", refused: bool = False
    ) -> None:
        facts = CallFacts(id=call, tenant=tenant, agent=agent, line="sip", since=1.0)
        asked = AskedTurn(1.0, "turn_1", "when are you open", call, tenant, agent)
        done = ReplyDone("resp_1", "failed" if failed else "completed", record=TurnSummary(refused=refused))
        self.failing.turn(facts, full_turn(asked, done, 300))

    def calls(self, failed: bool, turns: int, call: str = "new") -> None:
        """A new call comes, has so many turns, and ends."""
        facts = CallFacts(id=call, tenant="acme", agent="desk", line="sip", since=1.0)
        self.failing.began(facts)
        for _ in range(turns):
            self.turn(failed, call)
        self.failing.left(facts)

    def share(self, lets_in: bool = True) -> float:
        return self.failing.share(lets_in)

    def fails(self) -> "Site":
        self.turn(failed=True, call="one")
        self.turn(failed=True, call="two")
        assert self.share() == 0
        return self


def test_two_failed_turns_of_two_calls_are_enough_and_those_of_one_call_are_not() -> None:
    site = Site()
    for _ in range(5):
        site.turn(failed=True, call="one")
    assert site.share() == 1
    site.turn(failed=True, call="two")
    assert site.share() == 0


def test_a_quarter_of_the_turns_may_fail_and_a_turn_that_was_long_ago_does_not_count() -> None:
    site = Site()
    for number in range(6):
        site.turn(failed=False, call=f"call{number}")
    site.turn(failed=True, call="one")
    site.turn(failed=True, call="two")
    assert site.share() == 1
    site.now += WINDOW_S + 1
    site.turn(failed=True, call="one")
    assert site.share() == 1, "the others are forgotten, and one call is not enough"


def test_what_an_engine_refuses_being_well_does_not_count() -> None:
    site = Site()
    for call in ("one", "two", "three"):
        site.turn(failed=True, call=call, refused=True)
    assert site.share() == 1


@pytest.mark.parametrize("whose", ["agent", "tenant"])
def test_the_own_fault_of_one_agent_or_tenant_does_not_count_once_others_are_seen_to_be_well(whose: str) -> None:
    site = Site()
    for number in range(4):
        site.turn(False, f"call{number}", **{whose: "another"})  # type: ignore[arg-type]
    for call in ("one", "two", "three"):
        site.turn(True, call, **{whose: "broken"})  # type: ignore[arg-type]
    assert site.share() == 1
    site.turn(True, "four", **{whose: "another"})  # type: ignore[arg-type]
    assert site.share() == 0


def test_others_who_are_well_are_seen_over_a_minute_but_not_those_who_called_long_ago() -> None:
    site = Site()
    for _ in range(20):
        for call, tenant in (("one", "broken"), ("three", "well"), ("two", "broken"), ("four", "well")):
            site.now += 1.5
            site.turn(tenant == "broken" and site.now > 1030, call, tenant=tenant)
            assert site.share() == 1
    for call in ("one", "two") * 4:
        site.now += 1.5
        site.turn(True, call, tenant="broken")
    assert site.share() == 0, "nobody else has called for some time"


def test_it_comes_back_by_degrees_as_new_calls_go_well() -> None:
    site = Site().fails()
    shares = []
    for _ in range(8):
        shares.append(site.share())
        site.now += STEP_S
        site.calls(failed=False, turns=EVIDENCE)
    assert shares == [0, FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST, 16 * FIRST, 1, 1]


def test_without_new_calls_that_go_well_it_keeps_the_first_share() -> None:
    site = Site().fails()
    for _ in range(4 * 3600):
        site.now += 1
        site.turn(failed=False, call="one")
        assert site.share() <= FIRST
    site.calls(failed=False, turns=EVIDENCE - 1)
    assert site.share() == FIRST
    site.calls(failed=False, turns=1)
    assert site.share() == 2 * FIRST


def test_a_clock_that_jumps_by_hours_or_days_is_no_trouble() -> None:
    site = Site().fails()
    site.now += 1e6
    assert site.share() == FIRST


def pause_s(site: Site) -> float:
    """How long it wants no calls."""
    began = site.now
    while site.share() == 0:
        site.now += 0.5
    return site.now - began


def test_each_pause_is_longer_than_the_last_until_all_has_been_well_for_long() -> None:
    site = Site()
    pauses = [pause_s(site.fails()) for _ in range(8)]
    assert pauses == [PAUSE_S * 2**number for number in range(5)] + [LONGEST_PAUSE_S] * 3
    for wait_s, pause in ((FORGIVEN_S - 60, LONGEST_PAUSE_S), (FORGIVEN_S, PAUSE_S)):
        while site.share() < 1:
            site.now += STEP_S
            site.calls(failed=False, turns=EVIDENCE)
        site.now += wait_s
        assert pause_s(site.fails()) == pause


def test_calls_that_go_on_failing_while_it_wants_none_begin_the_pause_anew_and_make_it_no_longer() -> None:
    site = Site().fails()
    for _ in range(10):
        site.now += PAUSE_S / 2
        site.fails()
    assert pause_s(site) == PAUSE_S


def test_it_falls_back_while_it_recovers_even_if_calls_are_rare() -> None:
    site = Site().fails()
    site.now += PAUSE_S
    site.share()
    site.calls(failed=False, turns=EVIDENCE)
    site.now += STEP_S
    assert site.share() == 2 * FIRST
    site.turn(failed=True, call="three")
    site.now += WINDOW_S + 1
    site.turn(failed=False, call="three")
    assert site.share() > 0
    site.turn(failed=True, call="four")
    assert site.share() == 0


@pytest.mark.parametrize("failing", [0.5, 1.0])
@pytest.mark.parametrize("calls", [12, 60])
def test_a_relapse_is_seen_within_ten_seconds(calls: int, failing: float) -> None:
    """As the first time, at every share that it has meanwhile."""
    late, runs = 0, 100
    for seed in range(runs):
        lots, site, number = Random(seed), Site(), 0
        site.fails()
        until = lots.choice([2, 4, 8, 16]) * FIRST
        while site.share() < until:
            site.now += 6 / calls
            number += 1
            site.turn(False, f"call{number % calls}")
            site.calls(False, 1)
        began = site.now
        while site.share():
            site.now += 6 / calls
            number += 1
            site.turn(lots.random() < failing, f"call{number % calls}")
        late += site.now - began > 10 - 1.1
    assert late <= (0 if failing == 1 else 0.05) * runs


@pytest.mark.parametrize("per_s", [0.05, 0.1, 0.3, 1.0])
def test_a_pop_whose_turns_fail_for_ever_gets_hardly_any_callers(per_s: float) -> None:
    """An hour. Calls come at random, and last for a minute on average."""
    site, lots, shares = Site(), Random(1), CallShares(lots=Random(1))
    end, due, number, got = site.now + 3600, list[tuple[float, str]](), 0, 0
    while site.now < end:
        site.now += 0.5
        share = site.share()
        for _, call in [one for one in due if one[0] <= site.now]:
            site.turn(failed=True, call=call)
        due = [one for one in due if one[0] > site.now]
        if lots.random() < per_s / 2:
            number += 1
            limits = shares.limits([seen("fra", share=share)])
            due_now = share == 1 or limits["fra"][0].due
            shares.settle({"own fra"} & {limit.key for limit in limits.get("fra", ())},
                          {"own fra"} if due_now else (), limits)  # fmt: skip
            if due_now:
                got += 1
                site.calls(failed=True, turns=0, call=f"call{number}")
                length_s = lots.expovariate(1 / 60)
                due += [(site.now + 6 * (turn + 1), f"call{number}") for turn in range(int(length_s / 6) + 1)]
    assert got <= 6 + 0.05 * number


def test_it_does_not_recover_while_it_lets_nobody_in() -> None:
    site = Site().fails()
    for _ in range(60):
        site.now += 1
        assert site.share(lets_in=False) == 0
    site.now += PAUSE_S - 0.1
    assert site.share() == 0
    site.now += 0.1
    assert site.share() == FIRST


@pytest.mark.parametrize("failing", [0.5, 1.0])
@pytest.mark.parametrize("calls", [3, 12, 60])
def test_new_calls_stop_within_ten_seconds(calls: int, failing: float) -> None:
    """Each call has a turn every six seconds; from the 30th second on they fail. A report takes up to 1.1 s more."""
    soon, runs = 0, 200
    for seed in range(runs):
        lots, site = Random(seed), Site()
        begun = [lots.uniform(0, 6) for _ in range(calls)]
        turns = sorted((begun[call] + 6 * number, f"call{call}") for call in range(calls) for number in range(9))
        out: float | None = None
        for at, call in turns:
            site.now = 1000 + at
            site.turn(at > 30 and lots.random() < failing, call)
            if site.share() == 0:
                out = at
                break
        assert out is None or out > 30
        soon += out is not None and out <= 30 + 10 - 1.1
    assert soon >= (0.99 if failing == 1 else 0.95 if calls > 3 else 0.6) * runs, "two turns have to fail"


def test_a_pop_that_misses_one_turn_in_a_hundred_keeps_its_calls() -> None:
    lots, site, without = Random(1), Site(), 0
    for number in range(36_000):  # An hour of 60 calls
        site.now += 0.1
        site.turn(lots.random() < 0.01, f"call{number % 60}")
        without += site.share() < 1
    assert without == 0
