"""Every figure of a turn, from timelines whose truth is known."""

import numpy as np
import pytest

from latency_probes.measure import answered_late, judge, went_on
from latency_probes.timeline import Timeline
from tests.latency_probes.fake_server import tone
from tests.latency_probes.made import Made, said, silence, utterance


def test_the_gap_runs_from_the_last_voiced_sample_sent_to_the_first_audible_sample_received() -> None:
    line = Made().heard(2.0, "what are your opening hours").reply(2.0, tone(1)).done(3.0).line
    result = judge(said(), line)
    # The last voiced sample is that before second 1.9: block 94, sent at 1.88.
    assert result.gap_ms == pytest.approx(120)
    assert (result.outcome, result.cut_in, result.word_errors) == ("right", False, 0.0)


def test_silence_at_the_head_of_a_reply_is_not_heard() -> None:
    paced = judge(said(), Made().reply(2.0, np.concatenate([silence(0.1), tone(1)]), paced=True).line)
    assert paced.gap_ms == pytest.approx(220)
    at_once = judge(said(), Made().reply(2.0, np.concatenate([silence(0.1), tone(1)])).line)
    assert at_once.gap_ms == pytest.approx(120), "received at once"
    assert at_once.played_ms == pytest.approx(220), "and played later"


def test_a_reply_that_is_audible_before_the_end_of_the_utterance_cuts_in() -> None:
    line = Made().reply(1.5, tone(0.1), name="1").reply(2.1, tone(1), name="2").line
    result = judge(said(), line)
    assert result.cut_in
    assert result.gap_ms == pytest.approx(220), "the gap is that of the answer, which came later"


def test_an_early_answer_goes_on_or_is_cut() -> None:
    assert went_on(said(), Made().reply(1.5, tone(1), paced=True).line)
    assert not went_on(said(), Made().reply(1.5, tone(0.3), paced=True).line), "cut, since the caller went on"
    assert not went_on(said(), Made().reply(1.5, tone(1), "One moment, please.", paced=True).line)
    assert not went_on(said(), Made().reply(2.0, tone(1), paced=True).line), "in time"


def test_the_reply_before_the_utterance_is_no_cut_in() -> None:
    assert not judge(said(), Made().reply(0.5, tone(0.7)).reply(2.0, tone(1), name="2").line).cut_in


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("On Mondays we are closed.", "right"),
        ("Sorry, I did not catch that. Could you say it again?", "fallback"),
        ("The lunch menu is $18.50.", "wrong"),
        ("One moment, please.", "acknowledged"),
        ("Okay.", "acknowledged"),
    ],
)
def test_outcomes(text: str, outcome: str) -> None:
    assert judge(said(), Made().reply(2.0, tone(1), text).line).outcome == outcome


def test_an_acknowledgement_is_not_the_answer() -> None:
    line = Made().reply(2.0, tone(0.5), "One moment, please.").reply(3.0, tone(1), name="2").line
    result = judge(said(), line)
    assert result.outcome == "right"
    assert result.gap_ms == pytest.approx(1120)


def test_an_answer_behind_its_own_acknowledgement_is_late() -> None:
    one_reply = Made().reply(3.0, tone(3), "One moment, please. On Mondays we are closed.").line
    assert judge(said(), one_reply).outcome == "acknowledged"
    assert answered_late(said(), one_reply)
    for text in (
        "One moment, please.",
        "One moment, please. Sorry, I did not catch that.",
        "On Mondays we are closed.",
    ):
        assert not answered_late(said(), Made().reply(3.0, tone(1), text).line), text


def test_no_answer_within_four_seconds_is_none() -> None:
    assert judge(said(), Timeline(sent=Made().line.sent)).outcome == "none"
    late = judge(said(), Made().reply(5.9, tone(1)).line)
    assert (late.outcome, late.gap_ms) == ("none", None)


def test_a_cut_in_is_repaired_if_the_reply_stops_and_both_halves_are_heard() -> None:
    def judged(made: Made) -> tuple[bool | None, bool | None]:
        asked = utterance("booking", "a table for two on friday", before="a table")
        result = judge(said(asked, resumed=1.5), made.line)
        return result.silenced, result.repaired

    first, second = Made().heard(1.4, "a table"), "for two on friday"
    assert judged(first.heard(2.0, second).reply(1.45, tone(0.2), paced=True)) == (True, True)
    assert judged(Made().heard(2.0, second).reply(1.45, tone(0.2), paced=True)) == (True, False)
    assert judged(Made().heard(1.4, "a table").heard(2.0, second).reply(1.45, tone(1), paced=True)) == (False, False)
    assert judged(Made().reply(2.0, tone(1))) == (None, None)


def test_the_pause_is_measured_in_what_was_said() -> None:
    assert judge(said(resumed=1.5), Made().reply(2.0, tone(1)).line).pause_ms == pytest.approx(200, abs=10)


def test_the_servers_own_record_is_taken_apart() -> None:
    record = {"turn_latency": 143.2, "asr": 12, "confident": True, "speculation": "hit"}
    result = judge(said(), Made().reply(2.0, tone(1)).done(3.0, record=record).line)
    assert result.stages == {"turn_latency": 143.2, "asr": 12.0}
    assert result.flags == {"confident": True}
    assert result.labels == {"speculation": "hit"}


@pytest.mark.parametrize("record", [None, [1], "text"])
def test_a_server_without_a_record_explains_nothing(record: object) -> None:
    result = judge(said(), Made().reply(2.0, tone(1)).done(3.0, record=record).line)
    assert (result.stages, result.flags, result.labels) == ({}, {}, {})


def test_playback_is_in_order_and_is_flushed_when_the_caller_is_heard() -> None:
    made = Made().reply(2.0, tone(1))
    assert made.line.play_end == pytest.approx(3.0)
    assert np.array_equal(made.line.played(2.5, 480), tone(1)[12000:12480])
    assert not made.line.played(3.5, 480).any()
    made.event(2.4, "input_audio_buffer.speech_started")
    assert made.line.play_end == pytest.approx(2.4)
    assert made.line.busy()
    assert not made.done(2.5).line.busy()
