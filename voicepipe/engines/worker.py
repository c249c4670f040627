"""The only boundary between the event loop and blocking libraries: a few threads below the loop's priority.

Every library behind it must release the GIL while it works: onnxruntime, CTranslate2 and torch do, and so does any C
library that is called through `ctypes.CDLL` (pocketsphinx, espeak-ng). Hence no child processes and no pickling.
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from voicepipe.errors import EngineBusy, EngineError

P = ParamSpec("P")
T = TypeVar("T")


class Worker:
    """Threads of one engine. `nice` is added for these threads only: the event loop goes first.

    At most `limit` jobs wait; one more raises EngineBusy at once, so that overload is seen and not queued.
    """

    def __init__(self, name: str, threads: int = 1, *, nice: int = 5, limit: int = 1024) -> None:
        self.name = name
        self._limit = limit
        self._pending = 0
        self._nice = nice
        self._closed = False
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=self._lower)

    def submit(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run `fn` on a thread; to be called on the event loop. Cancelling the future drops the job, or its result.

        Raises EngineBusy when `limit` jobs are waiting, EngineError after `close`.
        """
        if self._closed:
            raise EngineError(f"The worker {self.name!r} is closed.")
        if self._pending >= self._limit:
            raise EngineBusy(f"The worker {self.name!r} has {self._pending} jobs waiting; admit fewer calls.")
        self._pending += 1
        job = self._pool.submit(fn, *args, **kwargs)
        loop = asyncio.get_running_loop()
        job.add_done_callback(lambda _: self._tell(loop, self._finished))
        return asyncio.wrap_future(job, loop=loop)

    def lane(self) -> "Lane":
        """A queue of jobs that run one after the other, on whichever thread is free."""
        return Lane(self)

    def close(self) -> None:
        """Drop what waits; jobs that run end by themselves. Safe to call twice."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _finished(self) -> None:
        self._pending -= 1

    def _lower(self) -> None:
        # On Linux a thread has a niceness of its own; elsewhere the threads keep the process's.
        if sys.platform == "linux":
            thread = threading.get_native_id()
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + self._nice)

    @staticmethod
    def _tell(loop: asyncio.AbstractEventLoop, fn: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody counts any more
            loop.call_soon_threadsafe(fn)


class Lane:
    """Jobs that share something (a decoder) and so must not overlap. In order, first in, first out."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._waiting: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()
        self._busy = False

    def post(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Add a job. The future carries its result or what it raised; cancel it to drop the job."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((future, lambda: fn(*args, **kwargs)))
        self._next()
        return future

    def drop(self) -> None:
        """Cancel what waits. The job that runs, if any, ends by itself and its result is dropped by whoever asked."""
        while self._waiting:
            self._waiting.popleft()[0].cancel()

    def _next(self) -> None:
        while self._waiting and not self._busy:
            future, fn = self._waiting.popleft()
            if future.cancelled():
                continue
            try:
                job = self._worker.submit(fn)
            except EngineError as error:
                future.set_exception(error)
                continue
            self._busy = True
            job.add_done_callback(lambda job, future=future: self._done(job, future))  # type: ignore[misc]

    def _done(self, job: "asyncio.Future[Any]", future: "asyncio.Future[Any]") -> None:
        self._busy = False
        if job.cancelled():
            future.cancel()
        elif (error := job.exception()) is not None:
            if not future.done():
                future.set_exception(error)
        elif not future.done():
            future.set_result(job.result())
        self._next()
