"""A client's share of the event loop, counted by what its messages take: the machine's speed changes nothing."""

import asyncio
import gc

import pytest

from voicepipe.base.tasks import TaskGroup
from voicepipe.ingress.loop_share import FULL, LEAST, SLICE_S, CallLoopShare, LoopLoad


def test_the_busier_the_loop_is_the_smaller_is_a_share() -> None:
    load = LoopLoad(0.0, 0.0)
    rooms = [load.room(float(n), busy) for n, busy in enumerate((0.0, 0.3, 0.9, 1.6, 2.55, 3.45, 4.45, 4.45))]
    assert rooms[:3] == pytest.approx([1.0, 1.0, 1.0]), "up to 0.6 of the time it is free"
    assert 1.0 > rooms[3] > 0.0, "0.7"
    assert rooms[4:7] == [0.0] * 3
    assert rooms[7] == 1.0, "it was idle for a second"


class Busy:
    """The processor's time, which goes on only where a step takes some."""

    now = 0.0

    def takes(self, seconds: float) -> None:
        self.now += seconds


def share(busy: Busy) -> CallLoopShare:
    return CallLoopShare(10, asyncio.get_running_loop().time, lambda: busy.now)


def untold(said: str) -> None:
    """What nobody looks at in this test."""


@pytest.mark.virtual_time
async def test_only_steps_count_and_not_what_is_waited_between_them() -> None:
    busy, told = Busy(), list[str]()
    mine = share(busy)

    async def slow() -> None:
        for _ in range(100):
            busy.takes(0.001)
            await asyncio.sleep(10)

    began = asyncio.get_running_loop().time()
    await mine.spend(slow(), told.append)
    assert asyncio.get_running_loop().time() - began == pytest.approx(1000)
    assert not told


@pytest.mark.virtual_time
async def test_a_reply_that_was_asked_for_counts_and_what_others_begin_does_not() -> None:
    """In bursts of `response.create` the messages cost little, and the replies that were begun held up every call."""
    busy = Busy()
    mine = share(busy)

    async def reply() -> None:
        await asyncio.sleep(0.001)
        busy.takes(1.0)

    async def asks() -> None:
        tasks.create_task(reply())

    async with TaskGroup() as tasks:
        tasks.create_task(reply())  # a turn's of its own, say
        await mine.spend(asks(), untold)
        await asyncio.sleep(0.01)
        began = asyncio.get_running_loop().time()
        await mine.spend(asyncio.sleep(0), untold)
        await mine.rest(untold)
    assert asyncio.get_running_loop().time() - began == pytest.approx(1.0 / 0.10, abs=0.2)


@pytest.mark.virtual_time
async def test_sound_at_its_own_pace_is_never_held_up() -> None:
    busy, told = Busy(), list[str]()
    mine = share(busy)

    async def append() -> None:
        busy.takes(0.001)  # Ten times what a packet of 20 ms takes.

    loop = asyncio.get_running_loop()
    began = loop.time()
    for n in range(3000):
        await asyncio.sleep(began + n * 0.02 - loop.time())
        before = loop.time()
        await mine.spend(append(), told.append)
        assert loop.time() == before
    assert not told


@pytest.mark.virtual_time
async def test_who_asks_too_much_is_slowed_and_told_once_and_nothing_is_dropped() -> None:
    busy, told, done = Busy(), list[str](), 0
    mine = share(busy)

    async def dear() -> None:
        nonlocal done
        done += 1
        busy.takes(0.01)

    began = asyncio.get_running_loop().time()
    for _ in range(200):
        await mine.spend(dear(), told.append)
    took = asyncio.get_running_loop().time() - began
    assert done == 200
    assert took == pytest.approx(200 * 0.01 / 0.1, rel=0.05), "a tenth of the time"
    (said,) = told
    assert "more slowly" in said


@pytest.mark.virtual_time
@pytest.mark.parametrize("clients", [1, 2, 12])
async def test_however_many_ask_too_much_the_loop_has_room_for_calls(clients: int) -> None:
    """Calls take half of the loop's time. Twelve clients with a tenth each would take more than there is."""
    busy, loop = Busy(), asyncio.get_running_loop()
    theirs = 0.0

    async def calls() -> None:
        while True:
            busy.takes(0.01)
            await asyncio.sleep(0.02)

    async def dear() -> None:
        nonlocal theirs
        theirs += 0.002
        busy.takes(0.002)

    async def floods(mine: CallLoopShare) -> None:
        while True:
            await mine.spend(dear(), untold)

    tasks = [asyncio.create_task(floods(share(busy))) for _ in range(clients)]
    tasks.append(asyncio.create_task(calls()))
    await asyncio.sleep(5)
    began, before = loop.time(), theirs
    await asyncio.sleep(60)
    for task in tasks:
        task.cancel()
    used = (theirs - before) / (loop.time() - began)
    assert used <= min(clients * 0.1, FULL - 0.5) + 0.01, "and what is left for others stays theirs"
    assert used >= LEAST * clients - 0.01, "nobody is shut out"


@pytest.mark.virtual_time
async def test_the_others_get_the_loop_after_each_slice() -> None:
    busy, mine = Busy(), list[float]()
    client = share(busy)
    others: list[float] = []

    async def other() -> None:
        while True:
            others.append(busy.now)
            await asyncio.sleep(0.001)

    async def cheap() -> None:
        busy.takes(0.001)
        mine.append(busy.now)

    beside = asyncio.create_task(other())
    for _ in range(100):
        await client.spend(cheap(), untold)
    beside.cancel()
    gaps = [b - a for a, b in zip(others, others[1:], strict=False)]
    assert max(gaps) <= SLICE_S + 0.001 + 1e-9


async def test_a_cancellation_reaches_what_is_carried_out() -> None:
    seen: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    mine = CallLoopShare(10)
    task = asyncio.create_task(mine.spend(waits(), untold))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


async def test_a_reply_that_is_cancelled_before_it_began_leaves_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    async def reply() -> None:
        raise AssertionError("it never begins")

    async def asks() -> None:
        tasks.create_task(reply()).cancel()

    async with TaskGroup() as tasks:
        await CallLoopShare(10).spend(asks(), untold)
    gc.collect()
    assert not [str(warning.message) for warning in recwarn]
