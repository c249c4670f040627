"""Keys that a caller presses, in virtual time."""

import asyncio

import pytest

from tests.support.scenario import Presses, Scenario, play
from voicepipe.call.call import Call
from voicepipe.turn.keypad import MOST

pytestmark = pytest.mark.virtual_time


async def test_one_task_waits_for_the_pause_after_all_keys() -> None:
    counted = list[int]()

    async def count(call: Call) -> None:
        await asyncio.sleep(0.9)
        counted.append(len(asyncio.all_tasks()))
        await asyncio.sleep(0.7)
        counted.append(len(asyncio.all_tasks()))

    keys = "1" * (MOST - 1)
    turn = f"The caller pressed the keys {' '.join(keys)} on their telephone."
    scenario = Scenario(
        about="39 keys within 0.4 s, and 2 s of pause", hears=[], says=[], length_ms=6000,
        keys=[Presses(at_ms=1000, keys=keys, every_ms=10)], replies={turn: "Thank you."},
    )  # fmt: skip
    recording = await play(scenario, asks=count)
    before, while_pressed = counted
    assert while_pressed == before  # The one that presses has ended, the one that waits has begun.
    assert f"user: {turn}" in recording.story
    assert recording.story.count("reply completed") == 1


async def test_a_turn_that_ends_by_itself_takes_nothing_from_the_next() -> None:
    """The task that waited for the pause after the first keys is still there when the next are pressed."""
    keys = [Presses(at_ms=500, keys="12#"), Presses(at_ms=1800, keys="34", every_ms=1900)]
    scenario = Scenario(about="", hears=[], says=[], length_ms=9000, keys=keys)
    told = [line for line in (await play(scenario)).story if line.startswith("user: ")]
    assert told == [f"user: The caller pressed the keys {pair} on their telephone." for pair in ("1 2", "3 4")]
