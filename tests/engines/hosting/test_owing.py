"""When an engine in another process is taken for dead, and that a slow one never is."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from voicepipe.engines.hosting.owing import Owing


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_engine_of_which_nothing_comes_is_down_after_what_it_may_take() -> None:
    clock = Clock()
    owing = Owing(clock)
    with owing.asked(10):
        clock.now += 9.9
        assert owing.alive
        clock.now += 0.2
        assert not owing.alive
        owing.moved()
        assert owing.alive, "back by itself"


def test_what_a_patient_caller_gave_up_is_still_owed_and_what_was_a_guess_is_not() -> None:
    clock = Clock()
    owing = Owing(clock)
    with owing.asked(10):
        clock.now += 0.3
    assert not owing.forgotten
    clock.now += 60
    assert owing.alive
    with owing.asked(10):
        clock.now += 5
    assert owing.forgotten and owing.alive
    with owing.asked(10):  # Something small is asked for.
        clock.now += 5.1
        assert not owing.alive, "counted from when it was asked first"


def test_one_that_answers_others_is_alive_and_a_long_prompt_may_take_longer() -> None:
    clock = Clock()
    owing = Owing(clock)
    with owing.asked(10), owing.asked(40):
        for _ in range(20):
            clock.now += 9
            owing.moved()
        clock.now += 30
        assert owing.alive


def test_failures_in_a_row_count_and_refusals_do_not() -> None:
    owing = Owing(Clock())
    for _ in range(2):
        owing.failed()
    owing.moved()
    assert not owing.forgotten
    owing.failed()
    assert owing.alive and owing.forgotten, "replies that begin well and break off are failures; a trial decides"
    owing.worked()
    owing.tried()
    assert owing.alive and not owing.forgotten
    for _ in range(3):
        owing.failed()
    owing.tried()
    assert not owing.alive and owing.forgotten
    owing.moved()
    assert not owing.alive, "a reply that begins is not one that is complete"
    owing.worked()
    assert owing.alive and not owing.forgotten


def test_under_load_one_that_hangs_is_found_within_its_own_limit() -> None:
    """And not within that of the longest prompt that there ever was."""
    clock = Clock()
    owing = Owing(clock)
    with owing.asked(10):
        with owing.asked(46):
            owing.moved()
        clock.now += 1
        owing.moved()
        with owing.asked(10):
            clock.now += 10.1
            assert not owing.alive


def test_a_guess_that_was_given_up_lends_its_limit_to_nobody() -> None:
    clock = Clock()
    owing = Owing(clock)
    with owing.asked(46):
        clock.now += 0.3
    with owing.asked(10):
        clock.now += 10.1
        assert not owing.alive


def test_one_that_was_gone_is_back_when_it_has_answered() -> None:
    owing = Owing(Clock())
    owing.gone = True
    owing.failed()
    assert not owing.alive and owing.forgotten, "somebody is there again, and fails"
    owing.worked()
    assert owing.alive and not owing.forgotten


async def tokens(every_s: float, most: int) -> AsyncGenerator[int, None]:
    for number in range(most):
        await asyncio.sleep(every_s)
        yield number


@pytest.mark.virtual_time
async def test_what_nobody_asks_for_is_not_owed() -> None:
    """A call on hold takes its reply no further; the engine is well all the same."""
    owing = Owing(asyncio.get_running_loop().time)
    stream = tokens(2, 3)
    while await owing.next(stream, 10) is not None:
        owing.moved()
        await asyncio.sleep(60)
        assert owing.alive and not owing.forgotten


@pytest.mark.virtual_time
async def test_one_that_hangs_in_the_middle_of_a_reply_is_down() -> None:
    owing = Owing(asyncio.get_running_loop().time)
    stream = tokens(0.1, 1)
    assert await owing.next(stream, 10) == 0
    owing.moved()
    hangs = tokens(60, 1)
    waiting = asyncio.create_task(owing.next(hangs, 10))
    await asyncio.sleep(9)
    assert owing.alive
    await asyncio.sleep(2)
    assert not owing.alive
    waiting.cancel()
    await asyncio.wait({waiting})
    assert owing.forgotten


@pytest.mark.virtual_time
async def test_one_that_answers_another_meanwhile_is_alive() -> None:
    owing = Owing(asyncio.get_running_loop().time)
    waiting = asyncio.create_task(owing.next(tokens(60, 1), 10))
    others = tokens(2, 20)
    for _ in range(20):
        await owing.next(others, 10)
        owing.moved()
        assert owing.alive
    waiting.cancel()
