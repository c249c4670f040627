"""ASR of many calls by one model. Whose turn it is: as in production, by `engines/whisper_schedule.py`."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from voicepipe.engines.whisper_schedule import Purpose, Schedule
from voicepipe.engines.worker import Worker

BATCH = 8
"""Utterances that are read in one pass, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    heard_s: float
    urgent: bool
    done: "asyncio.Future[bool]"

    def tell(self, outcome: bool | Exception) -> None:
        if self.done.done():  # nobody waits any more
            return
        if isinstance(outcome, Exception):
            self.done.set_exception(outcome)
        else:
            self.done.set_result(outcome)


class Readings:
    """`read` does one pass, over utterances of so many seconds, for which callers wait or do not; it blocks."""

    def __init__(self, name: str, weights: int, read: Callable[[list[float], bool], None]) -> None:
        self.name, self.weights = name, weights
        self._read = read
        self._worker = Worker("asr")
        self._schedule: Schedule[int] = Schedule(BATCH)
        self._waiting: dict[int, _Request] = {}
        """By call: one at most has."""
        self._passes: asyncio.Task[None] | None = None

    async def read(self, call: int, heard_s: float, *, final: bool) -> bool:
        """False: the reading was not needed, since another one of this call is to come. Raises what `read` raises."""
        before = self._waiting.get(call)
        if before and not before.done.done() and not final:
            return False  # that one will read the newest sound
        if before:
            before.tell(False)
        request = self._waiting[call] = _Request(heard_s, final, asyncio.get_running_loop().create_future())
        self._schedule.ask(call, Purpose.WORDS if final else Purpose.PARTIAL)
        if self._passes is None or self._passes.done():
            self._passes = asyncio.create_task(self._run())
        return await request.done

    def close(self) -> None:
        self._worker.close()

    async def _run(self) -> None:
        """One pass after the other, as long as somebody waits."""
        while calls := self._schedule.next():
            requests = [self._waiting.pop(call) for call in calls]
            began = time.monotonic()
            outcome: bool | Exception = True
            try:
                await self._worker.submit(self._read, [request.heard_s for request in requests], requests[0].urgent)
            except Exception as error:
                outcome = error
            self._schedule.took(len(requests), time.monotonic() - began)
            for request in requests:
                request.tell(outcome)
