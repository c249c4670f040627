"""The boundary between the event loop and blocking libraries: a few threads below the loop's priority.

Every library behind it must release the GIL while it works: onnxruntime, CTranslate2 and torch do, and so does any C
library that is called through `ctypes.CDLL` (pocketsphinx, espeak-ng). Hence no child processes and no pickling, but
for libraries that cannot live in our environment (`child.py`).
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from voicepipe.errors import EngineBusy, EngineError

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Job:
    """A blocking function that waits for a thread, or runs."""

    fn: Callable[[], Any]
    urgent: bool = False
    """Goes before those that are not; may be set while the job waits."""
    done: "Future[Any]" = field(default_factory=Future)

    def run(self) -> None:
        if self.done.set_running_or_notify_cancel():
            try:
                self.done.set_result(self.fn())
            except BaseException as error:
                self.done.set_exception(error)
                del self  # which the error holds, and which would hold the error

    def drop(self, error: EngineError | None) -> None:
        """It will not run: who waits for it is told `error`, or cancelled."""
        if error is None:
            self.done.cancel()
        elif self.done.set_running_or_notify_cancel():
            self.done.set_exception(error)


class Worker:
    """Threads of one engine. `nice` is added for these threads only: the event loop goes first.

    At most `limit` jobs wait or run; one more raises EngineBusy at once, so that overload is seen and not queued.
    """

    def __init__(self, name: str, threads: int = 1, *, nice: int = 5, limit: int = 1024) -> None:
        self.name = name
        self._limit = limit
        self._nice = nice
        self._closed = False
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._pending = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=self._lower)

    def submit(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run `fn` on a thread; to be called on the event loop. Cancelling the future drops the job, or its result.

        Raises EngineBusy when `limit` jobs are waiting, EngineError after `close`.
        """
        return self._submit(Job(lambda: fn(*args, **kwargs)))

    def submit_urgent(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """`submit`, before what is not urgent and does not run yet."""
        return self._submit(Job(lambda: fn(*args, **kwargs), urgent=True))

    def _submit(self, job: Job) -> asyncio.Future[Any]:
        self.add(job)
        return asyncio.wrap_future(job.done)

    def add(self, job: Job) -> None:
        """`submit`, for a job that may become urgent."""
        if self._closed:
            raise EngineError(f"The worker {self.name!r} is closed.")
        with self._lock:
            if self._pending >= self._limit:
                raise EngineBusy(f"The worker {self.name!r} has {self._pending} jobs waiting; admit fewer calls.")
            self._pending += 1
            self._waiting.append(job)
        self._pool.submit(self._work)

    def lane(self) -> "Lane":
        """A queue of jobs that run one after the other, on whichever thread is free."""
        return Lane(self)

    def close(self, error: EngineError | None = None) -> None:
        """Drop what waits; jobs that run end by themselves. Safe to call twice.

        `error`: what those who wait are told, where the engine ends and they do not; else they are cancelled.
        """
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            while self._waiting:
                self._waiting.popleft().drop(error)

    def _work(self) -> None:
        # The pool's own queue knows no urgency: what is next is chosen here, when a thread is free.
        with self._lock:
            job = next((job for job in self._waiting if job.urgent), None) or next(iter(self._waiting), None)
            if job is None:
                return  # closed meanwhile
            self._waiting.remove(job)
        job.run()
        with self._lock:
            self._pending -= 1

    def _lower(self) -> None:
        # On Linux a thread has a niceness of its own; elsewhere the threads keep the process's.
        if sys.platform == "linux":
            thread = threading.get_native_id()
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + self._nice)


class Lane:
    """Jobs that share something (a decoder) and so must not overlap. In order, first in, first out."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._waiting: deque[tuple[asyncio.Future[Any], Job]] = deque()
        self._running: Job | None = None

    def post(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Add a job. The future carries its result or what it raised; cancel it to drop the job."""
        return self._post(Job(lambda: fn(*args, **kwargs)))

    def post_urgent(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """`post`, before what other lanes have; what stands before it in this one becomes urgent with it."""
        if self._running:
            self._running.urgent = True
        for _, job in self._waiting:
            job.urgent = True
        return self._post(Job(lambda: fn(*args, **kwargs), urgent=True))

    def drop(self) -> None:
        """Cancel what waits. The job that runs, if any, ends by itself and its result is dropped by whoever asked."""
        while self._waiting:
            self._waiting.popleft()[0].cancel()

    def _post(self, job: Job) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((future, job))
        self._next()
        return future

    def _next(self) -> None:
        while self._waiting and self._running is None:
            future, job = self._waiting.popleft()
            if future.cancelled():
                continue
            try:
                self._worker.add(job)
            except EngineError as error:
                future.set_exception(error)
                continue
            self._running = job
            asyncio.wrap_future(job.done).add_done_callback(lambda ran, future=future: self._done(ran, future))  # type: ignore[misc]

    def _done(self, ran: "asyncio.Future[Any]", future: "asyncio.Future[Any]") -> None:
        self._running = None
        if ran.cancelled():
            future.cancel()
        elif (error := ran.exception()) is not None:
            if not future.done():
                future.set_exception(error)
        elif not future.done():
            future.set_result(ran.result())
        self._next()
