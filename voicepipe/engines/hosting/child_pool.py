"""Requests for processes of the same engine: each goes to one that is free, what is first before what is not, and calls
take turns."""

import asyncio
import time
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from voicepipe.base.errors import EngineBusy, EngineDead, EngineError, OverQueued
from voicepipe.base.queues import QueueFigures, QueueOutcomes, show
from voicepipe.base.round_robin import RoundRobin, owner
from voicepipe.base.worker import EACH
from voicepipe.engines.hosting.child import ChildRequest, EngineProcess, Program, loaded
from voicepipe.engines.hosting.supervised import SupervisedEngine


class ChildPool:
    """Some child processes with the same engine, and the queue of their requests. At most `limit` requests wait; one
    more raises EngineBusy at once, so that overload is seen and not queued."""

    def __init__(self, program: Program, processes: int = 1, *, limit: int = 256) -> None:
        self._name = program.name
        load = partial(loaded, program, self._hand_out)
        self._supervised = [SupervisedEngine(f"{program.name} process", load, start_s=None) for _ in range(processes)]
        self._waiting: RoundRobin[ChildRequest] = RoundRobin()
        self._limit = limit
        self._waits = QueueOutcomes()
        show(self)

    def figures(self) -> QueueFigures:
        """As `queues.Queue`."""
        running = sum(each.last.busy for each in self._supervised if each.last)
        return self._waits.figures(self._name, waiting=len(self._waiting), running=running, limit=self._limit)

    @property
    def alive(self) -> bool:
        """Whether a process is there to ask; those that ended come back by themselves."""
        return any(each.alive for each in self._supervised)

    @property
    def restarts(self) -> int:
        """How often a process has replaced another."""
        return sum(each.restarts for each in self._supervised)

    @property
    def about(self) -> dict[str, Any]:
        """The engine's description of itself, from when it was loaded."""
        first = self._supervised[0].last
        return first.about if first else {}

    async def start(self) -> None:
        """Load the engine in all processes. Raises EngineMissing or EngineError, and then leaves none behind."""
        started = await asyncio.gather(*(each.start() for each in self._supervised), return_exceptions=True)
        for problem in started:
            if problem is not None:
                await self.close()
                raise problem

    async def close(self) -> None:
        """Kill the processes; what was asked fails. Safe to call twice."""
        await asyncio.gather(*(each.close() for each in self._supervised))

    async def ask(
        self, head: dict[str, Any], data: bytes = b"", *, first: bool = False
    ) -> AsyncGenerator[tuple[dict[str, Any], bytes], None]:
        """The parts of the answer. Closing the generator cancels the request.

        Raises EngineDead: no process is there, or the one that was asked ended; EngineBusy; EngineError: it failed.
        """
        if len(self._waiting) >= self._limit:
            self._waits.refused += 1
            raise EngineBusy(f"{self._name} has {len(self._waiting)} requests waiting; admit fewer calls.")
        if self._waiting.of(owner()) >= EACH:
            self._waits.refused += 1
            raise OverQueued(f"One call has {EACH} requests waiting at {self._name}; it must ask for less.")
        request = ChildRequest(head, data, time.monotonic())
        self._waiting.put(request, owner(), urgent=first)
        self._hand_out()
        try:
            while (part := await request.parts.get()) is not None:
                if isinstance(part, EngineError):
                    raise part
                yield part
        finally:
            if request.child:
                request.child.cancel(request)
            else:
                self._waiting.remove(request)

    def _hand_out(self) -> None:
        """A process is free, a request has come, or a process has died."""
        while self._waiting and (child := next((child for child in self._working() if not child.busy), None)):
            request = self._waiting.pop()
            assert request
            self._waits.began(time.monotonic() - request.asked)
            child.send(request)
        while not self.alive and (request := self._waiting.pop()):
            ended = [each.last for each in self._supervised if each.last]
            why = next((child.why for child in ended if child.why), "")
            unexplained = f"{self._name}'s process has just ended." if ended else f"{self._name} is closed."
            request.parts.put_nowait(EngineDead(why or unexplained))

    def _working(self) -> list[EngineProcess]:
        return [each.core for each in self._supervised if each.alive]
