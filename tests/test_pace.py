"""How the blocks of a call's sound take turns with all else."""

from voicepipe.pace import AHEAD_S, BEHIND_BLOCKS, BEHIND_S, FAST_BLOCK_S, Pace


def pauses(pace: Pace, heard_s: float, now: float) -> list[float | None]:
    return [pace.pause_s(heard_s, now, block) for block in range(BEHIND_BLOCKS)]


def test_a_call_that_is_late_takes_several_blocks_at_a_stretch() -> None:
    assert pauses(Pace(0.0), 10.0, 10.5) == [0.0, *[None] * (BEHIND_BLOCKS - 1)]
    assert pauses(Pace(0.0), 10.0, 10.0) == [0.0] * BEHIND_BLOCKS


def test_a_recording_sent_at_once_is_taken_faster_than_it_lasts_and_no_faster() -> None:
    assert pauses(Pace(0.0), AHEAD_S + 1, 0.5) == [FAST_BLOCK_S] * BEHIND_BLOCKS


def test_who_was_silent_for_minutes_has_nothing_to_make_up_for() -> None:
    """Between two presses of a key no sound comes; a recording after that was taken as fast as the loop could."""
    pace = Pace(0.0)
    assert None in pauses(pace, 1.0, 600.0)
    assert pauses(pace, 1.0 + BEHIND_S + AHEAD_S + 0.1, 600.0) == [FAST_BLOCK_S] * BEHIND_BLOCKS
