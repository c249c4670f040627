"""One clock for all calls."""

import asyncio
import time

import pytest

from voicepipe.rtp.clock import MediaClock


async def test_one_clock_ticks_all_and_survives_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    clock, ticked = MediaClock(), [0] * 8

    def fails(now: float) -> None:
        raise RuntimeError("boom")

    def tick(n: int) -> None:
        ticked[n] += 1

    stops = [clock.add(lambda _, n=n: tick(n)) for n in range(8)]  # type: ignore[misc]
    clock.add(fails)
    running = asyncio.create_task(clock.run())
    async with asyncio.timeout(30):
        while min(ticked) < 5:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert max(ticked) - min(ticked) <= 2
    for stop in stops:
        stop()
    stopped = list(ticked)
    await asyncio.sleep(0.06)
    assert ticked == stopped
    running.cancel()
    assert "a media stream failed" in caplog.text


async def test_calls_tick_in_time_while_the_loop_is_slow() -> None:
    """One turn a wake-up made speech four times too slow where wake-ups were 20 ms apart."""
    clock, ticks, steps = MediaClock(), 0, 100

    def tick(now: float) -> None:
        nonlocal ticks
        ticks += 1

    clock.add(tick)
    running = asyncio.create_task(clock.run())
    for _ in range(steps):
        time.sleep(0.02)  # noqa: ASYNC251
        await asyncio.sleep(0)
    assert ticks > 0.4 * steps
    running.cancel()


async def test_a_stall_is_not_made_up_for() -> None:
    clock, ticks = MediaClock(), 0

    def tick(now: float) -> None:
        nonlocal ticks
        ticks += 1

    clock.add(tick)
    running = asyncio.create_task(clock.run())
    await asyncio.sleep(0)
    time.sleep(0.5)  # noqa: ASYNC251
    before = time.monotonic()
    await asyncio.sleep(0.02)
    assert ticks <= 3 + (time.monotonic() - before) / 0.02
    running.cancel()


async def test_the_clock_tells_how_late_it_is() -> None:
    clock, late = MediaClock(), list[float]()
    clock.add(lambda now: late.append(clock.late_s))
    running = asyncio.create_task(clock.run())
    await asyncio.sleep(0.1)
    time.sleep(0.3)  # noqa: ASYNC251
    stalled = len(late)
    await asyncio.sleep(0.1)
    running.cancel()
    assert min(late) >= 0 and max(late[stalled : stalled + 2]) > 0.25
    assert max(late[stalled + 2 :]) < max(late), "that the ticks come at another time from then on is not late"


async def test_a_clock_without_calls_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ticks, sleeps, sleep = MediaClock(), 0, 0, asyncio.sleep

    async def counted(seconds: float) -> None:
        nonlocal sleeps
        sleeps += 1
        await sleep(seconds)

    def tick(now: float) -> None:
        nonlocal ticks
        ticks += 1

    monkeypatch.setattr("voicepipe.rtp.clock.asyncio.sleep", counted)
    running = asyncio.create_task(clock.run())
    await sleep(0.1)
    assert not sleeps
    for _ in range(2):
        before, stop = ticks, clock.add(tick)
        async with asyncio.timeout(30):
            while ticks < before + 3:
                await sleep(0.01)
        stop()
        await sleep(0.05)
    slept = sleeps
    await sleep(0.1)
    assert sleeps == slept
    running.cancel()
