"""A reply's patience with its engines: the steps while the answer is late, and stalls once it has begun."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from voicepipe.base.errors import EngineStalled
from voicepipe.config import LadderConfig
from voicepipe.conversation.timing import TurnRecord

T = TypeVar("T")


class LateReply:
    """Times the steps of one late reply (`[ladder]`), and notices engines that stall.

    The step that was needed is noted in the turn's record.
    """

    def __init__(self, config: LadderConfig, record: TurnRecord, clock: Callable[[], float]) -> None:
        self.begun = False
        """Something is there to be played, or a tool was called: no shorter phrase and no acknowledgement is needed."""
        self.answering = False
        """Something of the answer is there to be heard: until then the steps are timed, from then on stalls."""
        self.withdrawn = False
        """What could be heard was taken back. The steps may be over by then, so stalls count all the same."""
        self._config = config
        self._record = record
        self._clock = clock
        self._excused_s = 0.0
        """Since the turn was confirmed."""
        self._committed: float | None = None
        self._no_tool = asyncio.Event()
        self._no_tool.set()

    @contextmanager
    def excused(self) -> Iterator[None]:
        """While a tool runs, its time does not bring the fallback nearer, which would cancel it half-way."""
        began = self._clock()
        self._no_tool.clear()
        try:
            yield
        finally:
            if self._committed is not None:
                self._excused_s += self._clock() - max(began, self._committed)
            self._no_tool.set()

    async def take_steps(
        self,
        hurry: Callable[[], None],
        acknowledge: Callable[[], Awaitable[None]],
        fall_back: Callable[[], Awaitable[None]],
    ) -> None:
        """Take the steps at their deadlines, counted from now: call it at commit. Returns after the last step, or once
        none is needed. `hurry` cuts the first phrase shorter; `fall_back` gives the answer up."""
        config = self._config
        committed = self._committed = self._clock()

        async def reach(ms: float) -> None:
            await asyncio.sleep(committed + ms / 1000 - self._clock())

        if config.short_phrase_ms and config.first_phrase == "clause":
            await reach(config.short_phrase_ms)
            if self.begun:
                return
            self._record.ladder = "short"
            hurry()
        if config.acknowledge_ms:
            await reach(config.acknowledge_ms)
            if self.begun:
                return
            self._record.ladder = "acknowledge"
            await acknowledge()
        if not config.fallback_ms:
            return
        late = False
        while not late:
            await self._no_tool.wait()
            deadline = config.fallback_ms + 1000 * self._excused_s
            await reach(deadline)
            late = self._no_tool.is_set() and deadline == config.fallback_ms + 1000 * self._excused_s
        if not self.answering:
            self._record.ladder = "fallback"
            await fall_back()

    async def next(self, source: AsyncIterator[T], *, stand_in: bool = False) -> T | None:
        """The engine's next piece, None after the last. `stand_in`: it is not of the answer. Raises EngineStalled: none
        came in time although a first was heard, or was taken back.

        Only the engine is waited for here, and 1 ms for its sound to be converted. A full queue and a tool may take as
        long as they take.
        """
        patience_ms = self._config.stall_ms if self.answering or self.withdrawn or stand_in else 0
        try:
            async with asyncio.timeout(patience_ms / 1000 or None):
                return await anext(source, None)
        except TimeoutError:
            self._record.ladder = "stall"
            raise EngineStalled(f"The model or the voice sent nothing for {patience_ms} ms.") from None
