"""Rules of waiting, judged on silences that are made."""

import pytest

from latency_probes.clips import HESITATION
from tests.endpointing.heard import Gap, Heard
from tests.endpointing.judged import (
    Wait,
    as_said,
    by_degrees,
    in_order,
    judge,
    without_full_stop,
    without_turn_model,
)
from voicepipe.turn.endpoint import EndpointConfig, Endpointer, Evidence


def heard(kind: str, *gaps: Gap, end_ms: float = 2000) -> Heard:
    return Heard("id", "text", kind, "quiet", end_ms, [*gaps])


def behind(text: str = "are you open", sure_ms: float = 80, last_ms: float = 2010) -> Gap:
    return Gap(last_ms, sure_ms, 1300, text)


def always(ms: float) -> Wait:
    return lambda evidence: ms


def test_what_callers_wait_runs_from_the_end_of_their_voice() -> None:
    rows = [heard("finished", behind()), heard("finished", behind(sure_ms=200))]
    assert judge(rows, always(140), HESITATION).finished_ms == [150, 210], "the ear was 10 ms late; unsure until 200"


def test_a_turn_that_ends_within_a_pause_is_a_cut_in() -> None:
    rows = [heard("pause_inside", behind())]
    assert judge(rows, always(100), "pause_inside").cut_ins == 1
    assert judge(rows, always(690), "pause_inside").cut_ins == 0
    assert judge(rows, always(490), "pause_inside").cut_ins == pytest.approx(0.5, abs=0.1)
    assert 0 < judge(rows, always(1000), HESITATION).cut_ins < 0.15, "some pause for longer than a second"


def test_a_silence_inside_a_word_that_outlasts_the_wait_interrupts() -> None:
    closure = Gap(900, 100, 160, "are you")
    judged = judge([heard("finished", closure, behind())], always(140), HESITATION)
    assert (judged.interrupted, judged.finished_ms) == (1, [])
    judged = judge([heard("finished", closure, behind())], always(180), HESITATION)
    assert (judged.interrupted, judged.finished_ms) == (0, [190])


def test_without_words_or_with_a_doubting_detector_no_turn_ends() -> None:
    for gap in (behind(text=""), behind(sure_ms=-1)):
        assert judge([heard("unfinished", gap)], always(140), HESITATION).unfinished_ms == [float("inf")]


def test_rules_that_know_less() -> None:
    wait = by_degrees(Endpointer(EndpointConfig()))
    open_ = Evidence("what are your opening", voice=0.02, full_stop=0.01)
    sure = Evidence("what are your opening hours", voice=0.98, full_stop=0.98)
    for rule in (wait, without_full_stop(wait), without_turn_model(wait)):
        assert rule(sure) == 140 < rule(open_)
    assert without_full_stop(wait)(open_) == wait(Evidence(open_.text, voice=0.02))
    assert without_turn_model(wait)(open_) == wait(Evidence(open_.text, full_stop=0.01))


def test_a_recogniser_that_mishears_nothing() -> None:
    misheard = heard("finished", Gap(500, 90, 200, "what"), behind("what are yours opening"))
    assert [gap.text for gap in as_said(misheard).gaps] == ["what", misheard.text]


def test_how_many_pairs_the_evidence_orders() -> None:
    finished, begun = behind("what are your opening hours"), behind("i would like a table for")
    end = Endpointer(EndpointConfig())
    assert in_order([heard("finished", finished), heard("pause_inside", begun)], end) == 1
    assert in_order([heard("finished", begun), heard("pause_inside", finished)], end) == 0
    assert in_order([heard("finished", begun), heard("pause_inside", begun)], end) == 0.5
