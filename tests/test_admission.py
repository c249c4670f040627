"""Whether one more call is let in, by how the last minute's turns went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.admission import FEWEST, NOMINAL_MS, WINDOW_S, Admission, engines_ms
from voicepipe.turn.events import ReplyDone


def after(*computes: float, slots: int = 10) -> Admission:
    admission = Admission(slots)
    for compute in computes:
        admission.note(0.0, "a", compute)
    return admission


def test_a_fast_pop_is_never_refused_for_its_nominal_wait() -> None:
    assert after(*[20.0] * 50).predicted_ms(0, calls=9) == NOMINAL_MS


def test_the_slowest_in_twenty_is_what_counts_and_grows_with_the_load() -> None:
    admission = after(*[20.0] * 90, *[300.0] * 10)
    empty, full = admission.predicted_ms(0, calls=0), admission.predicted_ms(0, calls=9)
    assert empty == pytest.approx(80 + 300 * 1.0025)
    assert full == pytest.approx(80 + 300 * 1.25 / 1.2025)


def test_one_slow_turn_refuses_nobody() -> None:
    assert after(*[20.0] * 30, 5000.0).predicted_ms(0, calls=3) == NOMINAL_MS
    assert after(*[900.0] * (FEWEST - 1)).predicted_ms(0, calls=3) == NOMINAL_MS


def test_what_is_over_is_forgotten() -> None:
    admission = after(*[900.0] * 40)
    assert admission.predicted_ms(WINDOW_S, calls=0) > 900
    assert admission.predicted_ms(WINDOW_S + 1, calls=0) == NOMINAL_MS


@given(st.lists(st.floats(0, 5000), min_size=FEWEST), st.integers(0, 9))
def test_no_prediction_is_below_the_nominal_wait_or_beyond_the_slowest_turn(computes: list[float], calls: int) -> None:
    predicted = after(*computes).predicted_ms(0, calls)
    assert NOMINAL_MS <= predicted <= max(NOMINAL_MS, 80 + max(computes) * 1.25)


def test_what_one_tenant_alone_sees_keeps_nobody_else_out() -> None:
    admission = after(*[5000.0] * 100)
    assert admission.predicted_ms(0, calls=0, tenant="a") > 5000
    assert admission.predicted_ms(0, calls=0, tenant="b") == NOMINAL_MS
    for _ in range(FEWEST):
        admission.note(0.0, "b", 20.0)
    assert admission.predicted_ms(0, calls=0, tenant="a") > 5000
    for other in ("b", "c", None):
        assert admission.predicted_ms(0, calls=0, tenant=other) == NOMINAL_MS


def test_what_several_tenants_see_counts_for_all() -> None:
    admission = after(*[900.0] * FEWEST)
    for _ in range(FEWEST):
        admission.note(0.0, "b", 900.0)
    for tenant in ("a", "b", "c", None):
        assert admission.predicted_ms(0, calls=0, tenant=tenant) > 900


def test_only_answers_to_callers_that_ran_no_tool_tell_of_the_engines() -> None:
    heard = {"at_words": 90.0, "compute": 40.0}
    assert engines_ms(ReplyDone("r", "completed", record=heard), 5000) == 40
    assert engines_ms(ReplyDone("r", "completed", record={"compute": 3.0}), 5000) is None, "the greeting"
    assert engines_ms(ReplyDone("r", "completed", record={**heard, "tool": True}), 5000) is None
    assert engines_ms(ReplyDone("r", "cancelled", record={"at_words": 90.0}), 5000) is None, "nothing was made yet"
    assert engines_ms(ReplyDone("r", "failed", record=heard), 5000) == 5000, "what was quick was the fallback"
    assert engines_ms(ReplyDone("r", "failed", record={**heard, "refused": True}), 5000) is None, "the engine is well"
    assert engines_ms(ReplyDone("r", "completed", record={**heard, "ladder": "fallback"}), 5000) == 5000
