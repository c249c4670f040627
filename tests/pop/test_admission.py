"""Whether one more call is let in, by how the last minute's turns went."""

import random
from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from voicepipe.conversation.events import ReplyDone
from voicepipe.conversation.timing import TurnSummary
from voicepipe.pop.admission import (
    FEWEST,
    WINDOW_S,
    Admission,
    AnsweredTurn,
    CallCounts,
    engines_ms,
    is_broken,
)
from voicepipe.sizing.prediction import NOMINAL_MS, latency_ms

BUDGET_MS = 300


def note(
    admission: Admission, compute_ms: float, tenant: str = "a", at: float = 0.0, call: str = "", calls: int = 5,
    broken: bool = False,
) -> None:  # fmt: skip
    """A turn; each of another call, unless told."""
    admission.note(
        AnsweredTurn(at, tenant, call or f"{tenant}{next(numbers)}", compute_ms, broken), CallCounts(calls, calls)
    )


def predicted(admission: Admission, now: float, calls: int, tenant: str | None = "a") -> float:
    return admission.predicted_ms(now, CallCounts(calls, calls), tenant)


numbers = count()


def after(*computes: float, slots: int = 10, budget_ms: float = BUDGET_MS) -> Admission:
    admission = Admission(slots, budget_ms)
    for compute in computes:
        note(admission, compute)
    return admission


def test_a_fast_pop_is_never_refused_for_its_nominal_wait() -> None:
    assert predicted(after(*[20.0] * 50), 0, 9) == NOMINAL_MS


def test_the_slowest_in_twenty_is_what_counts_and_grows_with_the_load() -> None:
    admission = after(*[20.0] * 90, *[300.0] * 10, budget_ms=5000)
    empty, full = predicted(admission, 0, 0), predicted(admission, 0, 9)
    assert empty == pytest.approx(80 + 300 * 1.0025)
    assert full == pytest.approx(80 + 300 * 1.25 / 1.2025)


def test_one_slow_turn_refuses_nobody() -> None:
    assert predicted(after(*[20.0] * 30, 5000.0), 0, 3) == NOMINAL_MS
    assert predicted(after(*[20.0] * FEWEST, 5000.0), 0, 3) == NOMINAL_MS
    assert predicted(after(*[900.0] * (FEWEST - 1)), 0, 3) == NOMINAL_MS


def test_one_call_with_slow_turns_refuses_nobody() -> None:
    """Its own tools and instructions may make its prompts slow."""
    admission = after()
    for number in range(40):
        note(admission, 20.0, call=f"honest{number % 8}")
    for _ in range(200):
        note(admission, 5000.0, call="greedy")
    assert predicted(admission, 0, 9) == NOMINAL_MS
    for _ in range(20):
        note(admission, 5000.0, call="another")
    assert predicted(admission, 0, 9) > 5000


def test_a_tenth_of_the_calls_with_slow_turns_refuses_nobody() -> None:
    """Two or three browsers with prompts of their own must not close a PoP to all."""
    admission = Admission(40, BUDGET_MS)
    honest, slow = [f"honest{n}" for n in range(30)], ["slow1", "slow2", "slow3"]
    for _ in range(6):
        for call in honest:
            note(admission, 20.0, call=call, calls=33)
        for call in slow * 2:
            note(admission, 900.0, call=call, calls=33)
    assert predicted(admission, 0, 33) == NOMINAL_MS
    for _ in range(12):
        note(admission, 900.0, call="slow4", calls=34)
    assert predicted(admission, 0, 34) > BUDGET_MS, "more than a tenth"


def test_turns_that_are_late_in_every_call_count_as_ever() -> None:
    admission = Admission(40, BUDGET_MS)
    for turn in range(10):
        for call in range(30):
            note(admission, 900.0 if (turn + call) % 10 == 0 else 20.0, call=f"call{call}", calls=30)
    assert predicted(admission, 0, 30) > BUDGET_MS


def test_engines_that_fail_say_nothing_of_how_many_calls_they_hold() -> None:
    admission = Admission(36, BUDGET_MS)
    for second in range(6):
        for call in ("one", "two", "three"):
            note(admission, 20.0, at=second, call=call, calls=3)
    for call in ("one", "two", "three"):
        note(admission, 5000.0, at=6, call=call, calls=3, broken=True)
    assert predicted(admission, 7, 3) > BUDGET_MS, "nobody comes to an engine that fails"
    for second in range(12, 12 + FEWEST):
        note(admission, 20.0, at=second, call="one", calls=3)
        note(admission, 20.0, at=second, call="two", calls=3)
    for calls in (3, 20, 35):
        assert predicted(admission, 40, calls) == NOMINAL_MS


def test_slow_turns_among_failures_lower_the_limit_all_the_same() -> None:
    admission = Admission(10, BUDGET_MS)
    for number in range(2 * FEWEST):
        failed = number % 4 == 0
        note(admission, 5000.0 if failed else 900.0, calls=10, broken=failed)
    for second in range(6, 8 + FEWEST):
        note(admission, 20.0, at=second, calls=7)
    assert predicted(admission, 20, 7) == NOMINAL_MS
    assert predicted(admission, 20, 8) > BUDGET_MS


def test_what_is_over_is_forgotten() -> None:
    admission = after(*[900.0] * 40)
    assert predicted(admission, WINDOW_S - 1, 0) > 900
    assert predicted(admission, WINDOW_S + 1, 0) == NOMINAL_MS


@given(st.lists(st.floats(0, 5000), min_size=FEWEST), st.integers(0, 9))
def test_no_prediction_is_below_the_nominal_wait_or_beyond_the_slowest_turn(computes: list[float], calls: int) -> None:
    took_ms = predicted(after(*computes), 0, calls)
    assert NOMINAL_MS <= took_ms <= max(NOMINAL_MS, 80 + max(computes) * 1.25)


def test_what_one_tenant_alone_sees_keeps_nobody_else_out() -> None:
    admission = Admission(10, BUDGET_MS, alone=False)
    for _ in range(FEWEST):
        note(admission, 20.0)
    for _ in range(200):
        note(admission, 5000.0, "b")
    assert predicted(admission, 0, 0, "b") > 5000
    for other in ("a", "c", None):
        assert predicted(admission, 0, 0, other) == NOMINAL_MS


def test_what_several_tenants_see_counts_for_all() -> None:
    admission = Admission(10, BUDGET_MS, alone=False)
    for tenant in ("a", "b"):
        for _ in range(FEWEST + 1):
            note(admission, 900.0, tenant)
    for other in ("a", "b", "c", None):
        assert predicted(admission, 0, 0, other) > 900


def test_where_turns_were_late_fewer_calls_are_let_in_and_then_one_more_each_minute() -> None:
    admission, late = after(), [900.0] * (FEWEST + 1)
    for compute in late:
        note(admission, compute, calls=10)
    assert predicted(admission, 1, 0) > BUDGET_MS, "nobody, as long as turns are late"
    for second in range(6, 7 + FEWEST):
        note(admission, 20.0, at=second, calls=7)
    assert predicted(admission, 20, 7) == NOMINAL_MS
    assert predicted(admission, 20, 8) > BUDGET_MS, "with 10 they were late"
    for second in range(20, 70):
        note(admission, 20.0, at=second, calls=8)
    assert predicted(admission, 70, 8) == NOMINAL_MS
    assert predicted(admission, 70, 9) > BUDGET_MS


@pytest.mark.parametrize(("holds", "most_late", "fewest_calls"), [(10, 0.15, 7), (15, 0.08, 11), (20, 0.0, 16)])
def test_a_host_with_more_slots_than_it_holds_settles(holds: int, most_late: float, fewest_calls: float) -> None:
    """18 callers who try again at once. A host that refused them until a minute without late turns had passed was empty
    by then, took all of them, and was late in three to nine of ten turns."""
    found = overloaded(Admission(36, BUDGET_MS), holds)
    assert found.late <= most_late
    assert found.calls >= fewest_calls


@dataclass
class Found:
    late: float
    """Share of the turns."""
    calls: float
    """On average."""


def overloaded(admission: Admission, holds: int, callers: int = 18, seconds: float = 1800.0) -> Found:
    """With more calls than the host `holds` work piles up, and with fewer it is worked off. Each call has one to four
    turns of some 9 s."""
    rng, now, piled_s, turns, calls = random.Random(1), 0.0, 0.0, list[bool](), 0
    back = [rng.uniform(0.2, 3) for _ in range(callers)]
    """When each caller who has no call tries again."""
    live = list[tuple[float, int, str]]()
    """Until when a call's turn lasts, its turns that are left, its id."""
    while now < seconds:
        piled_s = min(3.0, max(0.0, piled_s + 0.1 * (len(live) / holds - 1)))
        for caller in [due for due in back if due <= now]:
            back.remove(caller)
            if predicted(admission, now, len(live)) > BUDGET_MS:
                back.append(now + rng.uniform(0.2, 3))
            else:
                live.append((now + rng.uniform(8, 9), rng.randint(1, 4), str(next(numbers))))
        for call in [call for call in live if call[0] <= now]:
            compute_ms = max(1.0, rng.gauss(70, 15) + 1000 * piled_s * rng.uniform(0.5, 1))
            note(admission, compute_ms, at=now, call=call[2], calls=len(live))
            turns.append(latency_ms(compute_ms) > BUDGET_MS)
            live.remove(call)
            if call[1] > 1:
                live.append((now + 9.5, call[1] - 1, call[2]))
            else:
                back.append(now + rng.uniform(0.2, 3))
        now, calls = now + 0.1, calls + len(live)
    return Found(sum(turns) / len(turns), calls * 0.1 / seconds)


def test_only_answers_to_callers_that_ran_no_tool_tell_of_the_engines() -> None:
    heard = TurnSummary(at_words=90.0, compute=40.0)
    assert engines_ms(ReplyDone("r", "completed", record=heard), 5000) == 40
    assert engines_ms(ReplyDone("r", "completed", record=TurnSummary(compute=3.0)), 5000) is None, "the greeting"
    assert engines_ms(ReplyDone("r", "completed", record=replace(heard, tool=True)), 5000) is None
    assert engines_ms(ReplyDone("r", "cancelled", record=TurnSummary(at_words=90.0)), 5000) is None, (
        "nothing was made yet"
    )
    assert engines_ms(ReplyDone("r", "failed", record=heard), 5000) == 5000, "what was quick was the fallback"
    assert engines_ms(ReplyDone("r", "failed", record=replace(heard, refused=True)), 5000) is None, "the engine is well"
    assert engines_ms(ReplyDone("r", "completed", record=replace(heard, ladder="fallback")), 5000) == 5000


def test_an_engine_that_is_full_is_not_broken() -> None:
    assert is_broken(ReplyDone("r", "failed", record=TurnSummary(broken=True)))
    assert is_broken(ReplyDone("r", "completed", record=TurnSummary(ladder="fallback")))
    assert not is_broken(ReplyDone("r", "failed", record=TurnSummary()))
    assert not is_broken(ReplyDone("r", "completed", record=TurnSummary(ladder="acknowledge")))
