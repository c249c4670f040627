"""The boundary between the event loop and blocking libraries: a few threads below the loop's priority.

Every library behind it must release the GIL while it works: onnxruntime, CTranslate2 and torch do, and so does any C
library that is called through `ctypes.CDLL` (espeak-ng). Hence no child processes and no pickling, but for libraries
that cannot live in our environment (`engines/hosting/child.py`).

Calls take turns (`round_robin.py`). A thread whose library does not come back cannot be ended: `overdue` tells, and
whoever owns the worker leaves it behind (`close`) and makes another (`engines/hosting/supervised.py`). So the threads
are daemons, and not those of concurrent.futures, for which Python waits when it ends.
"""

import asyncio
import atexit
import contextlib
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from voicepipe.base.cpu_steal import CpuSteal
from voicepipe.base.errors import EngineBusy, EngineError, OverQueued
from voicepipe.base.process_clock import ProcessClock
from voicepipe.base.queues import QueueFigures, QueueOutcomes, show
from voicepipe.base.round_robin import RoundRobin, owner

P = ParamSpec("P")
T = TypeVar("T")
EACH = 64
"""Jobs of one call that may wait; an honest one has three or four."""
EXIT_S = 3.0
"""Seconds for which Python waits at its end for jobs that run."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class Job:
    """A blocking function that waits for a thread, or runs."""

    fn: Callable[[], Any]
    urgent: bool = False
    """It is done before jobs that are not urgent."""
    within_s: float | None = None
    """Seconds after which it hangs; None: it may take any time."""
    owner: str = field(default_factory=owner)
    asked: float = 0.0
    """Monotonic second from which on it waits."""
    due: float = math.inf
    """Second of the worker's clock by which it ends or hangs, once it runs. It is later where it had no processor."""
    _limit: float = 0.0
    hangs: bool = False
    """It was found overdue. This is final, or its engine would be ended for a hang and then not cleared away as one."""
    _cpu_steal: CpuSteal | None = None
    done: "Future[Any]" = field(default_factory=Future)

    def run(self, clock: Callable[[], float]) -> None:
        if self.done.set_running_or_notify_cancel():
            with contextlib.suppress(InvalidStateError):  # whoever waited was notified that it hangs
                try:
                    self.begin(clock())
                    self.done.set_result(self.fn())
                except BaseException as error:
                    self.done.set_exception(error)
                    del self  # which the error holds, and which would hold the error

    def drop(self, error: EngineError | None) -> None:
        """Drop the job before it runs: whoever waits for it gets `error`, or is cancelled."""
        if error is None:
            self.done.cancel()
        elif self.done.set_running_or_notify_cancel():
            self.done.set_exception(error)

    def give_up(self, error: EngineError) -> None:
        """Give up a job that runs and does not return: nobody waits for it any longer."""
        with contextlib.suppress(InvalidStateError):
            self.done.set_exception(error)

    def overdue(self, now: float) -> bool:
        """Whether the job hangs. On a machine with too few processors it is only slow: the time without one does not
        count."""
        if self._cpu_steal is not None and now > self.due:
            self.due = self._limit + self._cpu_steal.seconds()
            self.hangs = self.hangs or now > self.due
        return self.hangs

    def begin(self, now: float) -> None:
        """The job runs from now on, in this thread. Reads files: not while others wait for this thread."""
        if self.within_s is not None:
            self._cpu_steal = CpuSteal()
            self.due = self._limit = now + self.within_s


class Worker:
    """The threads of an engine for blocking libraries. `nice` is added for these threads only: the event loop goes
    first.

    At most `limit` jobs wait or run, and at most EACH of one call wait; one more raises EngineBusy at once, so that
    overload is seen and not queued."""

    def __init__(self, name: str, threads: int = 1, *, nice: int = 5, limit: int = 1024, told: bool = True) -> None:
        """`told`: its queue is among those that are shown."""
        self.name = name
        self._limit = limit
        self._nice = nice
        self._most = threads
        self._clock = ProcessClock()
        self._closed = False
        self._error: EngineError | None = None
        """The error with which it was closed."""
        self._more = threading.Condition()
        self._queue: RoundRobin[Job] = RoundRobin()
        self._running: set[Job] = set()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._waits = QueueOutcomes()
        _workers.add(self)
        if told:
            show(self)

    def figures(self) -> QueueFigures | None:
        """As `queues.Queue.figures`."""
        if self._closed:
            return None
        waiting, running = len(self._queue), len(self._running)
        return self._waits.figures(self.name, waiting=waiting, running=running, limit=self._limit)

    def submit(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run `fn` on a thread; to be called on the event loop. Cancelling the future drops the job, or its result.

        Raises EngineBusy when too many jobs are waiting, EngineError after `close`.
        """
        return self.ask(lambda: fn(*args, **kwargs))

    def ask(self, fn: Callable[[], T], *, urgent: bool = False, within_s: float | None = None) -> asyncio.Future[T]:
        """As `submit`. `urgent` jobs go before others that do not run yet; one that runs for longer than `within_s`
        hangs."""
        job = Job(fn, urgent, within_s)
        with self._more:
            if self._closed:
                raise self._over()
            if (waiting := len(self._queue) + len(self._running)) >= self._limit:
                self._waits.refused += 1
                raise EngineBusy(f"The worker {self.name!r} has {waiting} jobs waiting; admit fewer calls.")
            if self._queue.of(job.owner) >= EACH:
                self._waits.refused += 1
                raise OverQueued(f"One call has {EACH} jobs waiting at the worker {self.name!r}; it must ask for less.")
            job.asked = time.monotonic()
            self._queue.put(job, job.owner, urgent=job.urgent)
            # Threads that were woken, and do not run yet, still count as idle: each has a job that waits.
            if self._idle < len(self._queue) and len(self._threads) < self._most:
                self._begin(job)
            self._more.notify()
        known = weakref.ref(job)  # The future would keep the job, which keeps the future, until the next collection.
        job.done.add_done_callback(lambda done: self._drop(known()) if done.cancelled() else None)
        return asyncio.wrap_future(job.done)

    def overdue(self) -> bool:
        """Whether a running job does not return. To be called again and again (`process_clock.py`)."""
        now = self._clock()
        with self._more:
            return any(job.overdue(now) for job in self._running)

    def close(self, error: EngineError | None = None) -> None:
        """Drop jobs that wait; jobs that run end by themselves, but where one hangs all are given up: its library may
        hold up the others, and nobody checks them any more. Safe to call twice. `error`: raised to those who wait,
        where the engine ends and they do not; else they are cancelled."""
        now = self._clock()
        with self._more:
            self._closed, self._error = True, error
            waiting = list(iter(self._queue.pop, None))
            hanging = list(self._running) if any(job.overdue(now) for job in self._running) else []
            self._more.notify_all()
        for job in waiting:
            job.drop(self._over() if error else None)
        for job in hanging:
            job.give_up(self._over())

    def _over(self) -> EngineError:
        """The error for callers of a closed worker. Each gets its own: a traceback would keep a call in memory."""
        error = self._error
        return type(error)(*error.args) if error else EngineError(f"The worker {self.name!r} is closed.")

    def join(self, timeout_s: float) -> None:
        """Wait for the threads of a closed worker."""
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _begin(self, job: Job) -> None:
        """Start one more thread. Where none can be had, `job` waits for an existing one."""
        thread = threading.Thread(target=self._work, name=f"{self.name}_{len(self._threads)}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # The system has no more.
            if not self._threads:
                self._queue.remove(job)
                raise EngineBusy(
                    f"The worker {self.name!r} cannot have a thread: {error}; admit fewer calls."
                ) from None
        else:
            self._threads.append(thread)

    def _work(self) -> None:
        self._lower()
        while (job := self._next()) is not None:
            job.run(self._clock)
            with self._more:
                self._running.discard(job)
            del job  # or it would be kept, with all that its function knows, until the next one comes

    def _next(self) -> Job | None:
        """The next job to run; None once there will be none."""
        with self._more:
            while (job := self._queue.pop()) is None:
                if self._closed:
                    return None
                self._idle += 1
                self._more.wait()
                self._idle -= 1
            self._running.add(job)
            self._waits.began(time.monotonic() - job.asked)
            return job

    def _drop(self, job: Job | None) -> None:
        if job is not None:
            with self._more:
                self._queue.remove(job)

    def _lower(self) -> None:
        # On Linux a thread has a niceness of its own; elsewhere the threads keep the process's.
        if sys.platform == "linux":
            thread = threading.get_native_id()
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + self._nice)


_workers: "weakref.WeakSet[Worker]" = weakref.WeakSet()


@atexit.register
def _end() -> None:
    """Stop the threads at the interpreter's exit: one that works in a library while Python shuts down may crash it."""
    deadline = time.monotonic() + EXIT_S
    workers = list(_workers)
    for worker in workers:
        worker.close()
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
