"""A thread that writes a PoP's records, so that the event loop never touches the file."""

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from voicepipe.base import queues
from voicepipe.base.queues import QueueFigures, QueueOutcomes
from voicepipe.records.store import BUSY_S, Store

logger = logging.getLogger(__name__)

MOST = 4096
"""Jobs that may wait, of about 2 kB each."""
AT_ONCE = 256
"""Jobs of one transaction."""
AGAIN_S = 1.0
"""Seconds after which a file that could not be written is tried again: the disk is full, for instance."""
LAST_S = 5.0
"""Seconds for which a PoP that ends goes on trying."""

T = TypeVar("T")
Then = Callable[[], object]
Job = Callable[[Store], Then | None]
"""Writes something; it may be carried out twice. Its result is called, in the thread, once the data is on the disk."""


def _wake(store: Store) -> None:
    """The last job: the thread goes on, and ends."""


class RecordWriter:
    """A thread that carries out writing jobs in their order, so that the event loop never touches the file. What cannot
    be written waits until it can; beyond `MOST` jobs are dropped."""

    def __init__(self, store: Store) -> None:
        self.failing = ""
        """Why nothing can be written at the moment; empty: writing works."""
        self._store = store
        self._jobs = queue.SimpleQueue[tuple[float, Job]]()
        """Jobs, with the monotonic second at which each was put."""
        self._waits = QueueOutcomes()
        self._in_hand = 0
        """Jobs of the transaction in progress."""
        self._left = 0
        """Jobs that were given up at the end."""
        self._tells_loss = False
        self._until: float | None = None
        """The monotonic second at which it gives up; None: it goes on."""
        self._thread = threading.Thread(target=self._run, name="records", daemon=True)
        self._thread.start()
        queues.show(self)

    def figures(self) -> QueueFigures | None:
        """As `queues.Queue.figures`."""
        return self._waits.figures("records", waiting=self._jobs.qsize(), running=self._in_hand, limit=MOST)

    @property
    def waiting(self) -> int:
        """Number of jobs that wait."""
        return self._jobs.qsize() + self._in_hand

    def put(self, job: Job, *, always: bool = False) -> None:
        """Queue a job; never waits. `always`: also where too many wait, for the few jobs that must not be lost."""
        if always or self.waiting < MOST:
            return self._jobs.put((time.monotonic(), job))
        if not self._tells_loss:
            why = self.failing or "the disk is too slow"
            logger.error("records are lost: %d wait to be written, and no more are kept (%s)", MOST, why)
        self._tells_loss = True
        self._waits.refused += 1

    async def carried_out(self, work: Callable[[Store], T], then: Callable[[T], object] = lambda result: None) -> T:
        """The result of `work`, once its data is on the disk; `then` is called with it in the event loop, also if the
        caller was cancelled. Raises what `work` raises."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def job(store: Store) -> Then:
            try:
                result = work(store)
            except sqlite3.OperationalError:  # It is tried again.
                raise
            except Exception as error:
                loop.call_soon_threadsafe(_settle, done, None, error)
                raise
            return partial(loop.call_soon_threadsafe, deliver, result)

        def deliver(result: T) -> None:
            _settle(done, result, None)  # Who waits goes on after this.
            then(result)

        self.put(job, always=True)
        return await done

    def close(self) -> None:
        """Write what waits, for `LAST_S` at most. Blocks."""
        self._until = time.monotonic() + LAST_S
        self.put(_wake, always=True)  # It may wait for a job.
        self._thread.join(LAST_S + BUSY_S + AGAIN_S)
        if self._left:
            why = self.failing or "the disk is too slow"
            logger.error("%d records could not be written: %s", self._left, why)
        if not self._thread.is_alive():
            self._store.close()

    def _run(self) -> None:
        while self._until is None or not self._jobs.empty():
            jobs = self._taken()
            while jobs := self._unwritten(jobs):
                if self._until is not None and (jobs == [_wake] or time.monotonic() > self._until):
                    self._left = len(jobs) + self._jobs.qsize() - 1  # without the one that `close` has put
                    return
                time.sleep(AGAIN_S)
            self._in_hand = 0

    def _taken(self) -> list[Job]:
        """All jobs that wait, `AT_ONCE` at most; blocks until there is one."""
        waited = [self._jobs.get()]
        with suppress(queue.Empty):
            while len(waited) < AT_ONCE:
                waited.append(self._jobs.get_nowait())
        now = time.monotonic()
        for since, _ in waited:
            self._waits.began(now - since)
        self._in_hand = len(waited)
        return [job for _, job in waited]

    def _unwritten(self, jobs: list[Job]) -> list[Job]:
        """Carry out jobs together, or each alone where one of them fails. Returns those that must be tried again: the
        file cannot be written at present."""
        try:
            with self._store.transaction():
                then = [job(self._store) for job in jobs]
        except sqlite3.OperationalError as error:
            if not self.failing:
                logger.error("records cannot be written: %s; they wait", error)
            self.failing = str(error)
            return jobs
        except Exception as error:
            if len(jobs) > 1:  # Those before one that must be tried again are not carried out twice.
                return next((jobs[at:] for at, job in enumerate(jobs) if self._unwritten([job])), [])
            logger.error("a record was not written: %r", error, exc_info=error)
            self._waits.refused += 1
            return []
        for call in filter(None, then):
            _called(call)
        if self.failing:
            logger.warning("records are written again")
        self.failing, self._tells_loss = "", False
        return []


def _called(then: Then) -> None:
    try:
        then()
    except Exception as error:  # Such as an event loop that is closed: the thread goes on.
        logger.error("what follows a record failed: %r", error)


def _settle(done: "asyncio.Future[Any]", result: object, error: Exception | None) -> None:
    if done.done():  # Its owner was cancelled, or it was carried out twice.
        return
    if error:
        done.set_exception(error)
    else:
        done.set_result(result)
