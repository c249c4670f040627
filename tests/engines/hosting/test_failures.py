"""Failures in a row, and the trial that decides whose fault they are."""

import asyncio

from tests.support.waiting import until
from voicepipe.base.errors import EngineBusy
from voicepipe.base.round_robin import owned_by, owner
from voicepipe.engines.hosting.failures import FAILURES, Failures, FailureTrials


def test_failures_count_in_a_row_and_a_trial_decides() -> None:
    failures = Failures()
    for _ in range(2):
        for _ in range(FAILURES - 1):
            failures.failed()
        assert not failures.suspect
        failures.worked()
    for _ in range(FAILURES):
        failures.failed()
    assert failures.suspect and not failures.broken, "it may have been what it was given"
    failures.tried()
    assert failures.broken
    failures.failed()
    assert failures.broken
    failures.worked()
    assert not (failures.suspect or failures.broken), "back by itself"


class Engine:
    def __init__(self) -> None:
        self.works = True
        self.full = False
        self.trials: list[str] = []

    async def trial(self) -> None:
        self.trials.append(owner())
        await asyncio.sleep(0)
        if self.full:
            raise EngineBusy("1024 jobs wait")
        if not self.works:
            raise RuntimeError("CUDA error")


async def test_one_caller_s_words_are_not_an_engine_s_end() -> None:
    engine = Engine()
    tried = FailureTrials(engine.trial)
    with owned_by("rtc_1"):
        for _ in range(4 * FAILURES):
            tried.failed()
            await asyncio.sleep(0.001)
    assert not tried.broken
    assert set(engine.trials) == {""}, "not in the caller's name, who may have too much waiting"


async def test_one_that_has_no_room_for_a_trial_is_tried_again() -> None:
    """It has too much to do, which is no sign that it is broken; the next failure has it tried again."""
    engine = Engine()
    engine.full = True
    tried = FailureTrials(engine.trial)
    for _ in range(FAILURES):
        tried.failed()
    await until(lambda: tried._trying is None)
    assert not tried.broken and len(engine.trials) == 1
    engine.full = engine.works = False
    tried.failed()
    await until(lambda: tried.broken)


async def test_one_that_fails_at_a_trial_is_broken() -> None:
    engine = Engine()
    engine.works = False
    tried = FailureTrials(engine.trial)
    for _ in range(FAILURES):
        assert not tried.broken
        tried.failed()
    await until(lambda: tried.broken)
    assert len(engine.trials) == 1
