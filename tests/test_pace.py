"""How the blocks of a call's sound take turns with all else."""

import asyncio

import pytest

from tests.scenario import Says, Scenario, play
from tests.virtual_time import VirtualTimeLoop
from voicepipe.control import Control
from voicepipe.pace import AHEAD_S, BEHIND_BLOCKS, BEHIND_S, FAST_BLOCK_S, Pace
from voicepipe.turn.events import ReplyDone, SpeechStarted


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


@pytest.mark.virtual_time
async def test_a_whole_call_catches_up_after_the_loop_stood_still_and_while_its_turns_take_long() -> None:
    """One block a turn would be too few: five blocks come while four turns pass."""
    scenario = Scenario(
        about="a busy loop", hears=["when are you open"], says=[Says(at_ms=6000, for_ms=1000)], length_ms=10_000,
        replies={"when are you open": "At noon."},
    )  # fmt: skip

    async def keep_busy(control: Control) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        await asyncio.sleep(1)
        loop.stand_still(1)
        while True:
            loop.stand_still(0.025)
            await asyncio.sleep(0)

    recording = await play(scenario, asks=keep_busy)

    heard_ms = next(at for at, event in recording.events if isinstance(event, SpeechStarted))
    assert heard_ms == pytest.approx(6100, abs=200), "the second in which it stood still is made up for"
    assert [event.status for _, event in recording.events if isinstance(event, ReplyDone)] == ["completed"]
