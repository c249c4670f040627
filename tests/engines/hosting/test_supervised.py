"""An engine that breaks for good is started again, with pauses that grow."""

import asyncio

import pytest

from tests.support.waiting import until
from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.engines.hosting.supervised import IN_PROCESS, LEFT_BEHIND, SupervisedEngine

CLOSE_S = 0.1
HANGS_S = 7200.0
pytestmark = pytest.mark.virtual_time


class FakeCore:
    def __init__(self) -> None:
        self.errored = self.hung = False
        self.closed = 0
        self.fails: Exception | None = None

    async def close(self) -> None:
        await asyncio.sleep(CLOSE_S)
        if self.fails:
            raise self.fails
        self.closed += 1


class Maker:
    """Makes cores, or fails as told."""

    def __init__(self) -> None:
        self.made: list[FakeCore] = []
        self.tried_at: list[float] = []
        self.failing = self.hanging = 0
        self.error: Exception = EngineError("There is no GPU.")

    async def __call__(self) -> FakeCore:
        self.tried_at.append(asyncio.get_running_loop().time())
        if self.hanging:
            self.hanging -= 1
            await asyncio.sleep(HANGS_S)
        if self.failing:
            self.failing -= 1
            raise self.error
        self.made.append(FakeCore())
        return self.made[-1]


def pauses(times: list[float]) -> list[float]:
    return [round(later - earlier, 1) for earlier, later in zip(times, times[1:], strict=False)]


async def test_it_is_alive_from_start_to_close() -> None:
    life = SupervisedEngine("language model", Maker())
    assert not life.alive
    await life.start()
    await life.start()
    assert life.alive
    core = life.core
    await life.close()
    await life.close()
    assert not life.alive and core.closed == 1
    with pytest.raises(EngineDead, match="has not been started"):
        _ = life.core


async def test_a_first_start_that_fails_is_told() -> None:
    maker = Maker()
    maker.failing = 1
    life = SupervisedEngine("language model", maker)
    with pytest.raises(EngineError, match="no GPU"):
        await life.start()
    await asyncio.sleep(100)
    assert len(maker.tried_at) == 1
    await life.close()


async def test_what_ends_is_cleared_away_and_started_again() -> None:
    maker = Maker()
    life = SupervisedEngine("language model", maker)
    await life.start()
    maker.made[0].errored = True
    assert not life.alive
    await until(lambda: life.alive)
    assert life.core is maker.made[1] and maker.made[0].closed == 1
    assert life.restarts == 1
    await life.close()


async def test_pauses_grow_while_starts_fail(caplog: pytest.LogCaptureFixture) -> None:
    maker = Maker()
    life = SupervisedEngine("recogniser", maker, IN_PROCESS)
    await life.start()
    maker.failing = 8
    maker.made[0].errored = True
    await until(lambda: life.alive, 1000)
    assert pauses(maker.tried_at)[1:] == [2, 4, 8, 16, 32, 60, 60, 60]
    assert caplog.text.count("end with the restart of the PoP") == 6, "said from the third on"
    await life.close()


async def test_one_that_fails_at_its_start_waits_longer_and_one_that_has_run_does_not() -> None:
    maker = Maker()
    life = SupervisedEngine("language model", maker)
    await life.start()
    for lived_s in (10, 10, 100):
        await until(lambda: life.alive)
        await asyncio.sleep(lived_s)
        maker.made[-1].errored = True
        await until(lambda: not life.alive)
    await until(lambda: life.alive)
    waits = [round(gap - lived) for gap, lived in zip(pauses(maker.tried_at), (10, 10, 100), strict=True)]
    assert waits == [1, 2, 1]
    await life.close()


async def test_closing_ends_the_waiting_for_a_new_start() -> None:
    maker = Maker()
    life = SupervisedEngine("language model", maker)
    await life.start()
    maker.made[0].errored = True
    await until(lambda: maker.made[0].closed)
    await life.close()
    await asyncio.sleep(100)
    assert len(maker.tried_at) == 1


async def test_closing_waits_for_what_is_being_cleared_away() -> None:
    maker = Maker()
    life = SupervisedEngine("language model", maker)
    await life.start()
    maker.made[0].errored = True
    await asyncio.sleep(CLOSE_S / 2)
    await life.close()
    assert maker.made[0].closed == 1


async def test_no_error_ends_the_starting_again(caplog: pytest.LogCaptureFixture) -> None:
    maker = Maker()
    maker.error = OSError("No space left on device")
    life = SupervisedEngine("language model", maker)
    await life.start()
    maker.failing = 2
    maker.made[0].fails = OSError("No such process")
    maker.made[0].errored = True
    await until(lambda: life.alive)
    assert "the language model could not be started" in caplog.text and "No space left" in caplog.text
    assert "could not be cleared away" in caplog.text and "No such process" in caplog.text
    await life.close()


async def test_what_hangs_again_and_again_is_left_to_whoever_can_restart_the_pop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each time a thread and what it holds stay behind."""
    maker = Maker()
    life = SupervisedEngine("recogniser", maker)
    await life.start()
    for _ in range(LEFT_BEHIND + 1):
        await until(lambda: life.alive)
        maker.made[-1].errored = maker.made[-1].hung = True
        await until(lambda: not life.alive)
    await asyncio.sleep(1000)
    assert not life.alive and len(maker.made) == LEFT_BEHIND + 1 and "restart this PoP" in caplog.text
    await life.close()


async def test_a_start_that_hangs_after_a_hang_is_left_behind_too(caplog: pytest.LogCaptureFixture) -> None:
    """What held up a call into the library mostly holds up the next start: nobody was ever told to restart the PoP."""
    maker = Maker()
    life = SupervisedEngine("recogniser", maker)
    await life.start()
    maker.hanging = LEFT_BEHIND
    maker.made[-1].errored = maker.made[-1].hung = True
    await asyncio.sleep(HANGS_S)
    assert not life.alive and len(maker.tried_at) == 1 + LEFT_BEHIND
    assert caplog.text.count("was not ready within 300 s") == LEFT_BEHIND and "restart this PoP" in caplog.text
    await life.close()


async def test_a_start_that_hangs_once_is_followed_by_another(caplog: pytest.LogCaptureFixture) -> None:
    maker = Maker()
    life = SupervisedEngine("recogniser", maker)
    await life.start()
    maker.hanging = 1
    maker.made[-1].errored = True
    await asyncio.sleep(HANGS_S / 2)
    assert life.alive and "restart this PoP" not in caplog.text
    await life.close()


async def test_who_knows_itself_how_long_a_start_takes_is_waited_for() -> None:
    maker = Maker()
    life = SupervisedEngine("language model", maker, start_s=None)
    maker.hanging = 1
    await life.start()
    maker.hanging = 1
    maker.made[-1].errored = True
    await asyncio.sleep(HANGS_S + 60)
    assert life.alive and len(maker.made) == 2
    await life.close()


async def test_a_library_that_does_not_come_back_is_told_at_the_start_and_counted_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    maker = Maker()
    maker.error = TimeoutError("It did not say a word.")
    life = SupervisedEngine("speech synthesis", maker)
    maker.failing = 1
    with pytest.raises(EngineError, match="did not say a word"):
        await life.start()
    await life.start()
    maker.failing = 100
    maker.made[-1].errored = True
    await asyncio.sleep(HANGS_S)
    assert maker.failing == 100 - LEFT_BEHIND - 1 and "did not say a word" in caplog.text
    assert "hung 4 times: restart this PoP" in caplog.text
    await life.close()


async def test_what_cannot_be_cleared_away_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Maker()
    life = SupervisedEngine("language model", maker)
    await life.start()
    monkeypatch.setattr(FakeCore, "close", lambda core: asyncio.sleep(1e6))
    maker.made[-1].errored = True
    await until(lambda: not life.alive)
    await until(lambda: life.alive)
    await life.close()
