"""How fast a call takes in sound that waits for it, beside all else."""

import asyncio

import numpy as np
import pytest

from tests.support.sinks import Blocks
from tests.support.virtual_time import VirtualTimeLoop
from voicepipe.audio import BLOCK, Block
from voicepipe.ingress.blocks import AHEAD_S, BEHIND_BLOCKS, BEHIND_S, FAST_BLOCK_S, BlockQueue, IntakePace


def pauses(intake: IntakePace, heard_s: float, now: float) -> list[float | None]:
    return [intake.pause_s(heard_s, now, block) for block in range(BEHIND_BLOCKS)]


def test_a_call_that_is_late_takes_several_blocks_at_a_stretch() -> None:
    assert pauses(IntakePace(0.0), 10.0, 10.5) == [0.0, *[None] * (BEHIND_BLOCKS - 1)]
    assert pauses(IntakePace(0.0), 10.0, 10.0) == [0.0] * BEHIND_BLOCKS


def test_a_recording_sent_at_once_is_taken_faster_than_it_lasts_and_no_faster() -> None:
    assert pauses(IntakePace(0.0), AHEAD_S + 1, 0.5) == [FAST_BLOCK_S] * BEHIND_BLOCKS


def test_who_was_silent_for_minutes_has_nothing_to_make_up_for() -> None:
    """Between two presses of a key no sound comes; a recording after that was taken as fast as the loop could."""
    intake = IntakePace(0.0)
    assert None in pauses(intake, 1.0, 600.0)
    assert pauses(intake, 1.0 + BEHIND_S + AHEAD_S + 0.1, 600.0) == [FAST_BLOCK_S] * BEHIND_BLOCKS


@pytest.mark.virtual_time
async def test_a_call_catches_up_after_the_loop_stood_still_and_while_its_turns_take_long() -> None:
    """One block a turn would be too few: five blocks come while four turns pass."""
    loop, late = asyncio.get_running_loop(), list[float]()
    assert isinstance(loop, VirtualTimeLoop)
    queue = BlockQueue(loop.time)

    async def speak() -> None:
        began = loop.time()
        for number in range(500):
            due = began + number * 0.02
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            queue.push(np.zeros(BLOCK, np.int16), due)
        queue.end()

    async def keep_busy() -> None:
        await asyncio.sleep(1)
        loop.stand_still(1)
        while not queue.ended:
            loop.stand_still(0.025)
            await asyncio.sleep(0)

    def hear(block: Block) -> None:
        late.append(loop.time() - block.arrived)

    await asyncio.gather(speak(), keep_busy(), queue.listen(Blocks(hear)))
    assert len(late) == 500 and max(late) > 0.9
    assert max(late[200:]) < 0.2, "the second in which it stood still is made up for"
