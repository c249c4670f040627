"""Blocks of sound: who is late catches up, who is early waits, and the others always get their turn."""

from voicepipe.pace import AHEAD_S, BEHIND_BLOCKS, FAST_BLOCK_S, pause_s


def test_a_call_in_time_lets_the_others_go_after_each_block() -> None:
    assert [pause_s(0.01, block) for block in range(3)] == [0, 0, 0]


def test_a_call_that_is_late_takes_some_at_a_stretch_and_no_more() -> None:
    pauses = [pause_s(-0.2, block) for block in range(1, 2 * BEHIND_BLOCKS + 1)]
    assert pauses == [*[None] * (BEHIND_BLOCKS - 1), 0] * 2


def test_a_recording_that_comes_at_once_is_slowed_once_it_is_far_ahead() -> None:
    assert [pause_s(AHEAD_S + 1, block) for block in range(3)] == [FAST_BLOCK_S] * 3
