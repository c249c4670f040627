"""When an engine in another process is taken for dead, and that a slow one never is."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from voicepipe.engines.hosting.liveness import Liveness


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_engine_of_which_nothing_comes_is_down_after_what_it_may_take() -> None:
    clock = Clock()
    liveness = Liveness(clock)
    with liveness.asked(10):
        clock.now += 9.9
        assert liveness.alive
        clock.now += 0.2
        assert not liveness.alive
        liveness.moved()
        assert liveness.alive, "back by itself"


def test_what_a_patient_caller_gave_up_is_still_pending_and_what_was_a_guess_is_not() -> None:
    clock = Clock()
    liveness = Liveness(clock)
    with liveness.asked(10):
        clock.now += 0.3
    assert not liveness.needs_trial
    clock.now += 60
    assert liveness.alive
    with liveness.asked(10):
        clock.now += 5
    assert liveness.needs_trial and liveness.alive
    with liveness.asked(10):  # Something small is asked for.
        clock.now += 5.1
        assert not liveness.alive, "counted from when it was asked first"


def test_one_that_answers_others_is_alive_and_a_long_prompt_may_take_longer() -> None:
    clock = Clock()
    liveness = Liveness(clock)
    with liveness.asked(10), liveness.asked(40):
        for _ in range(20):
            clock.now += 9
            liveness.moved()
        clock.now += 30
        assert liveness.alive


def test_failures_in_a_row_count_and_refusals_do_not() -> None:
    liveness = Liveness(Clock())
    for _ in range(2):
        liveness.failed()
    liveness.moved()
    assert not liveness.needs_trial
    liveness.failed()
    assert liveness.alive and liveness.needs_trial, "who begins well and breaks off has failed; a trial decides"
    liveness.worked()
    liveness.tried()
    assert liveness.alive and not liveness.needs_trial
    for _ in range(3):
        liveness.failed()
    liveness.tried()
    assert not liveness.alive and liveness.needs_trial
    liveness.moved()
    assert not liveness.alive, "a reply that begins is not one that is complete"
    liveness.worked()
    assert liveness.alive and not liveness.needs_trial


def test_under_load_one_that_hangs_is_found_within_its_own_limit() -> None:
    """And not within that of the longest prompt that there ever was."""
    clock = Clock()
    liveness = Liveness(clock)
    with liveness.asked(10):
        with liveness.asked(46):
            liveness.moved()
        clock.now += 1
        liveness.moved()
        with liveness.asked(10):
            clock.now += 10.1
            assert not liveness.alive


def test_a_guess_that_was_given_up_lends_its_limit_to_nobody() -> None:
    clock = Clock()
    liveness = Liveness(clock)
    with liveness.asked(46):
        clock.now += 0.3
    with liveness.asked(10):
        clock.now += 10.1
        assert not liveness.alive


def test_one_that_was_gone_is_back_when_it_has_answered() -> None:
    liveness = Liveness(Clock())
    liveness.gone = True
    liveness.failed()
    assert not liveness.alive and liveness.needs_trial, "somebody is there again, and fails"
    liveness.worked()
    assert liveness.alive and not liveness.needs_trial


async def tokens(every_s: float, most: int) -> AsyncGenerator[int, None]:
    for number in range(most):
        await asyncio.sleep(every_s)
        yield number


@pytest.mark.virtual_time
async def test_what_nobody_asks_for_is_not_pending() -> None:
    """A call on hold takes its reply no further; the engine is well all the same."""
    liveness = Liveness(asyncio.get_running_loop().time)
    stream = tokens(2, 3)
    while await liveness.next(stream, 10) is not None:
        liveness.moved()
        await asyncio.sleep(60)
        assert liveness.alive and not liveness.needs_trial


@pytest.mark.virtual_time
async def test_one_that_hangs_in_the_middle_of_a_reply_is_down() -> None:
    liveness = Liveness(asyncio.get_running_loop().time)
    stream = tokens(0.1, 1)
    assert await liveness.next(stream, 10) == 0
    liveness.moved()
    hangs = tokens(60, 1)
    waiting = asyncio.create_task(liveness.next(hangs, 10))
    await asyncio.sleep(9)
    assert liveness.alive
    await asyncio.sleep(2)
    assert not liveness.alive
    waiting.cancel()
    await asyncio.wait({waiting})
    assert liveness.needs_trial


@pytest.mark.virtual_time
async def test_one_that_answers_another_meanwhile_is_alive() -> None:
    liveness = Liveness(asyncio.get_running_loop().time)
    waiting = asyncio.create_task(liveness.next(tokens(60, 1), 10))
    others = tokens(2, 20)
    for _ in range(20):
        await liveness.next(others, 10)
        liveness.moved()
        assert liveness.alive
    waiting.cancel()
