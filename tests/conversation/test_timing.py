"""What is derived from a turn's stamps."""

import msgspec

from voicepipe.conversation.timing import TurnRecord, TurnSummary

STAMPS = {
    "voice_ended": 10.0, "settle": 10.06, "words": 10.08, "prepare": 10.08, "token": 10.1, "phrase": 10.11,
    "speech": 10.12, "commit": 10.13, "audible": 10.14,
}  # fmt: skip


def record(**flags: object) -> TurnRecord:
    turn = TurnRecord("turn_1", **flags)  # type: ignore[arg-type]
    for hop, when in STAMPS.items():
        turn.stamp(hop, when)  # type: ignore[arg-type]
    return turn


def test_stages_and_offsets_are_milliseconds() -> None:
    summary = record(confident=True).summary()
    stages = {"turn_latency": 140, "endpoint": 130, "asr": 20, "llm": 30, "tts": 10, "compute": 40, "playout": 10}
    assert {name: getattr(summary, name) for name in stages} == stages
    assert (summary.at_settle, summary.at_audible, summary.confident) == (60, 140, True)


def test_the_first_stamp_of_a_kind_stands_until_it_is_forgotten() -> None:
    turn = record()
    turn.stamp("prepare", 99.0)
    assert turn.stamps["prepare"] == STAMPS["prepare"]
    turn.forget("prepare", "speech")
    turn.stamp("prepare", 10.2)
    assert turn.stamps["prepare"] == 10.2
    assert turn.summary().compute is None


def test_input_faster_than_real_time_is_not_measured() -> None:
    summary = record(unpaced=True).summary()
    assert summary.turn_latency is None and summary.unpaced


def test_what_did_not_happen_is_left_out() -> None:
    summary = TurnRecord("turn_1").summary()
    assert summary == TurnSummary(turn_id="turn_1")
    assert msgspec.to_builtins(summary) == {"turn_id": "turn_1", "confident": False}


def test_discarded_speculations_are_counted_with_the_work_that_went_into_them() -> None:
    turn = TurnRecord("turn_1")
    turn.stamp("prepare", 1.0)
    turn.discard(1.05)
    assert (turn.discarded, round(turn.discarded_ms)) == (1, 50), "it was still being made"
    turn.stamp("prepare", 2.0)
    turn.stamp("speech", 2.02)
    turn.discard(2.5)
    assert (turn.discarded, round(turn.discarded_ms)) == (2, 70), "it had only waited"
    assert turn.summary().discarded == 2
    assert "prepare" not in turn.stamps, "the next one begins anew"
