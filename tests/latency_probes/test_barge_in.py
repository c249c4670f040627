"""What became of a reply that something came over, from timelines whose truth is known: it begins at 4 s."""

import numpy as np
import pytest

from latency_probes.measure import judge
from latency_probes.records import OverResult
from latency_probes.timeline import WIRE_RATE
from tests.latency_probes.fake_server import tone
from tests.latency_probes.made import Made, said, silence
from voicepipe.audio import Pcm

REPLY_AT = 2.0


def over(made: Made, reference: Pcm | None = None) -> OverResult:
    result = judge(said(over=True), made.line, tone(6) if reference is None else reference).over
    assert result
    return result


def turned_down(start: float, seconds: float) -> Pcm:
    """Six seconds of reply, 20 dB lower for some of them."""
    pcm = tone(6)
    pcm[int(start * WIRE_RATE) : int((start + seconds) * WIRE_RATE)] //= 10
    return pcm


def test_a_reply_that_goes_on_was_not_cut() -> None:
    result = over(Made().reply(REPLY_AT, tone(6), paced=True).done(8.0))
    assert result == OverResult(cut=False, answered=False, compared=True)


def test_ducking_is_seen_against_the_reference() -> None:
    result = over(Made().reply(REPLY_AT, turned_down(2.1, 0.5), paced=True).done(8.0))
    assert result.ducked_ms == pytest.approx(100, abs=1)
    assert not result.cut


def test_a_quiet_place_in_the_reply_is_not_ducking() -> None:
    pcm = np.concatenate([tone(2.1), silence(0.3), tone(3.6)])
    assert over(Made().reply(REPLY_AT, pcm, paced=True).done(8.0), reference=pcm).ducked_ms is None


def test_a_cut_is_timed_by_its_last_audible_sample_and_by_its_first_event() -> None:
    made = Made().reply(REPLY_AT, np.concatenate([tone(2.3), silence(0.2)]), paced=True)
    result = over(made.event(4.6, "input_audio_buffer.speech_started").done(4.7, "cancelled"))
    assert result.cut
    assert result.silent_ms == pytest.approx(280, abs=1)
    assert result.decided_ms == pytest.approx(600, abs=1)


def test_a_reply_that_is_shorter_than_its_reference_was_cut_without_a_word() -> None:
    result = over(Made().reply(REPLY_AT, tone(3), paced=True).done(5.0))
    assert (result.cut, result.decided_ms) == (True, None)


def test_voice_after_the_end_of_the_reply_cuts_nothing() -> None:
    made = Made().reply(REPLY_AT, tone(3), paced=True).done(5.0).event(5.5, "input_audio_buffer.speech_started")
    assert not over(made, reference=tone(3)).cut


def test_a_truncated_item_is_cut() -> None:
    made = Made().reply(REPLY_AT, tone(3), paced=True).done(5.0)
    assert over(made.event(4.5, "conversation.item.truncated", item_id="a1"), tone(3)).decided_ms == pytest.approx(500)


def test_an_answer_to_a_noise_is_counted() -> None:
    made = Made().reply(REPLY_AT, tone(3), paced=True).done(5.0).reply(6.0, tone(1), "Pardon?", name="2")
    assert over(made, tone(3)).answered


def test_another_reply_than_the_reference_is_not_compared() -> None:
    made = Made().reply(REPLY_AT, tone(6), paced=True).done(8.0)
    result = over(made, reference=np.concatenate([tone(1), silence(2), tone(2)]))
    assert (result.compared, result.ducked_ms, result.cut) == (False, None, False)


def test_what_comes_after_the_reply_comes_over_nothing() -> None:
    assert judge(said(over=True), Made().reply(REPLY_AT, tone(1), paced=True).done(3.0).line, tone(1)).over is None
