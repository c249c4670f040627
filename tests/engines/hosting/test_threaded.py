"""Models on threads: what they fail at is counted, what hangs is seen, and what is closed gives its memory back."""

import asyncio
import threading

import numpy as np
import pytest

from tests.support.waiting import until
from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.base.worker import Worker
from voicepipe.engines.base import Speech
from voicepipe.engines.hosting.failures import FailureTrials
from voicepipe.engines.hosting.threaded import RecogniserCore, ThreadedVoice, loaded

SOUND = Speech(np.zeros(10, np.int16))


class Model:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.works = True

    def warm(self) -> None:
        self.done.append("warm")
        if not self.works:
            raise EngineError("no memory")

    def unload(self) -> None:
        self.done.append("unload")

    def speak(self) -> Speech:
        if not self.works:
            raise ZeroDivisionError
        return SOUND


def voice(model: Model) -> ThreadedVoice[Model]:
    return ThreadedVoice("the library", Worker("voice"), model, model.speak, 60.0)


async def test_a_model_is_loaded_and_warmed_on_the_workers_thread() -> None:
    threads: list[str] = []

    class Seen(Model):
        def warm(self) -> None:
            threads.append(threading.current_thread().name)

    def load() -> Seen:
        threads.append(threading.current_thread().name)
        return Seen()

    worker = Worker("loads")
    assert isinstance(await loaded(worker, load), Seen)
    assert len(set(threads)) == 1 and threading.main_thread().name not in threads
    worker.close()


async def test_the_worker_of_a_model_that_cannot_be_had_is_closed() -> None:
    model, worker = Model(), Worker("loads")
    model.works = False
    with pytest.raises(EngineError, match="no memory"):
        await loaded(worker, lambda: model)
    with pytest.raises(EngineError, match="is closed"):
        await worker.ask(model.speak, urgent=False, within_s=60)


async def test_what_nobody_expected_is_an_engine_s_error_and_counts() -> None:
    model = Model()
    speaks = voice(model)
    assert await speaks.ask(model.speak, first=True, within_s=60) is SOUND
    model.works = False
    for _ in range(3):
        with pytest.raises(EngineError, match=r"the library failed: ZeroDivisionError\(\)"):
            await speaks.ask(model.speak, first=True, within_s=60)
    await until(lambda: speaks.errored)  # The trial fails as well.
    assert not speaks.hung
    await speaks.close()


async def test_a_voice_that_takes_longer_than_it_may_hangs() -> None:
    model, free = Model(), threading.Event()
    speaks = voice(model)

    def hang() -> Speech:
        free.wait()
        return SOUND

    waiting = asyncio.create_task(speaks.ask(hang, first=True, within_s=0.05))
    await until(lambda: speaks.hung)
    assert speaks.errored
    await speaks.close()
    with pytest.raises(EngineDead, match="the library hangs or failed and is being loaded again"):
        await waiting
    assert model.done == ["unload"]
    free.set()


class Queue:
    def __init__(self, worker: Worker) -> None:
        self.failures = FailureTrials(lambda: worker.ask(lambda: None, urgent=True, within_s=60))
        self.closed = False

    def close(self) -> None:
        self.closed = True


async def test_a_recogniser_that_is_closed_tells_who_waits_and_unloads() -> None:
    model, worker = Model(), Worker("recogniser")
    queue = Queue(worker)
    hears = RecogniserCore(worker, queue, model)
    assert not hears.errored
    await hears.close()
    assert queue.closed and model.done == ["unload"]


async def test_a_model_that_hangs_is_left_to_its_thread() -> None:
    model, worker, free = Model(), Worker("recogniser"), threading.Event()
    hears = RecogniserCore(worker, Queue(worker), model)
    hanging = asyncio.ensure_future(worker.ask(free.wait, urgent=True, within_s=0.05))
    await until(lambda: hears.hung)
    await asyncio.wait_for(hears.close(), 5)
    assert model.done == []
    free.set()
    await asyncio.wait([hanging])
