"""A PoP whose turns fail wants no calls, and then more by degrees."""

from random import Random

import pytest

from voicepipe.observe.failing import FIRST, PAUSE_S, STEP_S, WINDOW_S, FailingTurns
from voicepipe.observe.following import CallFacts
from voicepipe.observe.turns import AskedTurn, full_turn
from voicepipe.turn.events import ReplyDone
from voicepipe.turn.timing import TurnSummary


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


def test_it_comes_back_by_degrees() -> None:
    site = Site().fails()
    shares = []
    for _ in range(8):
        shares.append(site.share())
        site.now += STEP_S
    assert shares == [0, FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST, 16 * FIRST, 1, 1]


def test_it_falls_back_while_it_recovers_even_if_calls_are_rare() -> None:
    site = Site().fails()
    site.now += PAUSE_S + 2 * STEP_S
    assert site.share() == 4 * FIRST
    site.turn(failed=True, call="three")
    site.now += WINDOW_S + 1
    site.turn(failed=False, call="three")
    assert site.share() > 0
    site.turn(failed=True, call="four")
    assert site.share() == 0


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
