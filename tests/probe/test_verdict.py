"""What is made of a call: by what the caller heard, and by what the PoP says of the turn."""

from typing import Any

import pytest

from latency_probes.failed_call import CallFailed
from latency_probes.measure import judge
from latency_probes.plan import CallPlan
from latency_probes.records import CallRecord
from latency_probes.timeline import Route, Timeline
from tests.latency_probes.fake_server import tone
from tests.latency_probes.made import Made, said
from tests.probe.series import QUESTION, series
from voicepipe.base.errors import ProbeError
from voicepipe.probe.probe_targets import ProbeQuestion, ProbeSeries
from voicepipe.probe.verdict import ProbeVerdict, verdict

ENDED = 1.88
"""Second at which the caller's last voiced block had been sent."""
HEARD = "what are your opening hours"
READY = {"at_settle": 60, "at_words": 80, "at_prepare": 80, "at_phrase": 120, "at_speech": 130, "at_commit": 140}
IN_TIME = READY | {"turn_latency": 142.0, "at_audible": 142}
SLOW_LLM = READY | {"at_phrase": 640, "at_speech": 650, "at_audible": 652, "turn_latency": 652.0}


def call(made: Made, error: ProbeError | None = None, *, greets: bool = True) -> CallRecord:
    """One call with one question, which was greeted."""
    if greets:
        made.line.began = -1.0
        made.line.add_audio("a0", "r0", tone(0.1), 0.5)
    record = CallRecord(CallPlan(1, "quiet", ()), made.line, error=error)
    record.said.append(said())
    return record


def judged(
    record: CallRecord, its: ProbeSeries | None = None, question: ProbeQuestion = QUESTION, *, lag_ms: float = 0.0
) -> ProbeVerdict:
    result = judge(record.said[0], record.timeline) if record.said else None
    return verdict(record, result, its or series(), question, lag_ms)


def answered(
    gap_s: float, text: str = "We are open Tuesday to Sunday.", record: Any = None, heard: str = HEARD
) -> Made:
    made = Made().heard(2.0, heard)
    return made.reply(ENDED + gap_s, tone(1.0), text, paced=True).done(ENDED + gap_s + 1.1, record=record)


def test_an_answer_in_time() -> None:
    made = answered(0.2, record=IN_TIME)
    made.line.setup["session.created"] = 35.0
    seen = judged(call(made))
    assert (seen.fault, seen.stage, seen.pop, seen.right, seen.sure) == (None, "", "fra1", True, True)
    assert seen.heard_gap_s == pytest.approx(0.22, abs=0.03) and seen.setup_s == 0.035 and seen.words_wrong == 0


@pytest.mark.parametrize(
    ("changed", "stage"),
    [
        (SLOW_LLM, "llm"),
        (SLOW_LLM | {"tool": True}, "tools"),
        (READY | {"at_words": 690, "at_commit": 690, "asr": 630, "turn_latency": 692.0}, "asr"),
        (READY | {"at_speech": 690, "turn_latency": 692.0}, "tts"),
        (READY | {"at_commit": 690, "turn_latency": 692.0}, "endpointing"),
        (READY | {"turn_latency": 692.0}, "playout"),
        (IN_TIME, "network"),
        (None, "unknown"),
        ("no record", "unknown"),
    ],
)
def test_a_late_answer_waited_for_a_stage(changed: Any, stage: str) -> None:
    seen = judged(call(answered(0.7, record=changed)))
    assert (seen.fault, seen.stage, seen.right) == ("late", stage, True)
    assert seen.heard_gap_s == pytest.approx(0.72, abs=0.03) and f"waited for {stage}" in seen.says


def test_the_budget_is_the_targets() -> None:
    assert judged(call(answered(0.7, record=SLOW_LLM)), series(budget_ms=1000)).fault is None


def test_behind_an_acknowledgement_the_pop_says_when_the_answer_began() -> None:
    record = SLOW_LLM | {"ladder": "acknowledge", "at_phrase": 900, "at_speech": 910, "turn_latency": 1900.0}
    seen = judged(call(answered(0.3, "One moment. We are open Tuesday to Sunday.", record)))
    assert (seen.fault, seen.stage, seen.heard_gap_s) == ("late", "llm", 1.9)


@pytest.mark.parametrize(
    ("record", "stage"),
    [
        ({"ladder": "fallback", "at_commit": 140}, "asr"),
        ({"ladder": "fallback", "at_words": 80, "at_commit": 140}, "llm"),
        ({"ladder": "fallback", "at_words": 80, "at_commit": 140, "tool": True}, "tools"),
        ({"ladder": "stall", "at_words": 80, "at_phrase": 90, "at_commit": 140}, "tts"),
        (READY | {"ladder": "stall"}, "playout"),
    ],
)
def test_a_fallback_is_no_answer_and_the_first_stage_that_brought_nothing_is_named(record: Any, stage: str) -> None:
    seen = judged(call(answered(0.3, "I did not get that.", record)))
    assert (seen.fault, seen.stage, seen.heard_gap_s, seen.right) == ("missed", stage, None, None)


def test_silence_is_no_answer() -> None:
    seen = judged(call(Made().heard(2.0, HEARD)))
    assert (seen.fault, seen.stage) == ("missed", "unknown")


@pytest.mark.parametrize(("heard", "stage"), [(HEARD, "llm"), ("want a new opal", "asr")])
def test_a_wrong_answer_is_the_recognisers_or_the_models(heard: str, stage: str) -> None:
    seen = judged(call(answered(0.2, "Lunch is eighteen dollars.", IN_TIME, heard)))
    assert (seen.fault, seen.stage, seen.right) == ("wrong", stage, False)


def test_without_expressions_any_answer_is_right_that_does_not_ask_again() -> None:
    anything = QUESTION._replace(expect=())
    assert judged(call(answered(0.2, "Lunch is eighteen dollars.")), question=anything).right is True
    assert judged(call(answered(0.2, "Could you say that again?")), question=anything).fault == "wrong"


def test_an_agent_that_is_to_speak_first_does() -> None:
    assert judged(call(answered(0.2), greets=False)).fault == "greeting"
    assert judged(call(answered(0.2), greets=False), series(greets=False)).fault is None


def test_an_agent_that_speaks_before_the_end_cuts_in() -> None:
    made = Made().reply(1.5, tone(1.0), paced=True).done(2.6)
    assert judged(call(made))[1:3] == ("cut_in", "endpointing")


def test_a_late_probe_blames_nobody_for_what_it_may_have_done_itself() -> None:
    late = call(answered(0.7, record=SLOW_LLM))  # by some 320 ms
    assert [judged(late, lag_ms=lag_ms).sure for lag_ms in (0, 250, 350)] == [True, True, False]
    wrong = call(answered(0.2, "Lunch is eighteen dollars.", IN_TIME))
    assert [judged(wrong, lag_ms=lag_ms).sure for lag_ms in (0, 60)] == [True, False], "a hole in the question"
    missed = call(Made().heard(2.0, HEARD))
    assert [judged(missed, lag_ms=lag_ms).sure for lag_ms in (60, 499, 500)] == [True, True, False]
    assert judged(call(answered(0.2, record=IN_TIME)), lag_ms=2000).sure, "in time all the same"


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (CallFailed("x", "connect"), ("connect", "")),
        (CallFailed("x", "refused", "engine_down"), ("refused", "engine_down")),
        (ProbeError("x"), ("failed", "")),
    ],
)
def test_a_call_that_is_not_placed(error: ProbeError, seen: tuple[str, str]) -> None:
    record = CallRecord(CallPlan(1, "quiet", ()), Timeline(), error=error)
    found = judged(record, lag_ms=5000)
    assert (found.fault, found.stage, found.pop) == (*seen, "fra1")
    assert found.sure == (seen[0] == "refused"), "a late probe may have missed an answer, but no refusal"


def test_by_a_directory_the_pop_is_the_one_that_it_named() -> None:
    its = series(way="directory")
    lost = CallRecord(CallPlan(1, "quiet", ()), Timeline(), error=CallFailed("x", "connect", pop="lhr1"))
    assert (judged(lost, its).pop, judged(lost, its).stage) == ("lhr1", "")
    lost.error = CallFailed("x", "refused", "no_pop")
    assert (judged(lost, its).pop, judged(lost, its).stage) == ("", "no_pop")
    lost.error = CallFailed("x", "connect")
    assert (judged(lost, its).pop, judged(lost, its).stage) == ("", "directory")
    made = answered(0.2)
    made.line.route = Route("iad1", "ws://x", 200.0, False, 1, 1)
    assert judged(call(made), its).pop == "iad1"
    made.line.route, made.line.call_id = None, "rtc_gru1.0c5e77aa91f2"
    assert judged(call(made), its).pop == "gru1", "a telephone is only told an address"
