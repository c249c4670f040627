"""Is the event loop on time, and what does the process hold?"""

import asyncio
import time

import pytest

from tests.support.waiting import until
from voicepipe.observe import process
from voicepipe.observe.process import LATEST, ProcessWatch


async def test_one_blocking_call_shows_in_the_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = ProcessWatch()
    assert watch.lag_p99_ms() == watch.lag_now_ms() == 0, "before anything was measured"
    running = asyncio.create_task(watch.run())
    await until(lambda: watch.lag_p99_ms() > 0)
    time.sleep(0.3)  # noqa: ASYNC251
    await until(lambda: watch.lag_p99_ms() > 100)
    assert 100 < watch.vitals().loop_lag_p99_ms < 60_000
    running.cancel()


def test_of_the_last_seconds_an_earlier_stall_is_no_part() -> None:
    watch = ProcessWatch()
    watch._lags.extend([0.5] * 100 + [0.001] * LATEST)
    assert watch.lag_now_ms() == pytest.approx(1.0)
    assert watch.lag_p99_ms() == pytest.approx(500.0)


def test_a_loop_that_wakes_too_early_is_not_late() -> None:
    watch = ProcessWatch()
    watch._lags.extend([-0.002] * 10)
    assert watch.lag_p99_ms() == 0


async def test_the_process_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "READ_EVERY", 1)
    watch = ProcessWatch()
    running = asyncio.create_task(watch.run())
    await until(lambda: watch.vitals().rss_kb > 0)
    before = watch.vitals()
    assert before.fds > 2 and before.tasks >= 2 and before.threads >= 1 and before.cpu_s > 0
    held = bytearray(b"x") * (64 << 20)
    await until(lambda: watch.vitals().rss_kb > before.rss_kb + 40_000)
    assert held
    running.cancel()
