"""A reply's patience with its engines: the rungs while the answer is late, and what has stalled once it has begun."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from voicepipe.config import LadderConfig
from voicepipe.errors import EngineStalled
from voicepipe.turn.timing import TurnRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rungs:
    """What a late reply does."""

    hurry: Callable[[], None]
    """Cut the first phrase shorter."""
    acknowledge: Callable[[], Awaitable[None]]
    fall_back: Callable[[], Awaitable[None]]
    """Give the answer up."""


class Ladder:
    """One reply's. Which rung was needed is noted in the turn's record."""

    def __init__(self, config: LadderConfig, record: TurnRecord, clock: Callable[[], float]) -> None:
        self.begun = False
        """Something is there to be played, be it a tool's call: no shorter phrase and no acknowledgement is needed."""
        self.answering = False
        """Something of the answer is there to be heard: up to here the rungs count, from here on its stalls."""
        self._config = config
        self._record = record
        self._clock = clock

    async def climb(self, rungs: Rungs) -> None:
        """The deadlines, counted from now: call it at commit. Ends with the last rung, or when none is needed."""
        config, committed = self._config, self._clock()

        async def reach(ms: float) -> None:
            await asyncio.sleep(committed + ms / 1000 - self._clock())

        for rung, ms in (("short", config.short_phrase_ms), ("acknowledge", config.acknowledge_ms)):
            if not ms:
                continue
            await reach(ms)
            if self.begun:
                return
            self._record.ladder = rung
            if rung == "short":
                rungs.hurry()
            else:
                await rungs.acknowledge()
        if not config.fallback_ms:
            return
        await reach(config.fallback_ms)
        if not self.answering:
            self._record.ladder = "fallback"
            await rungs.fall_back()

    async def next(self, source: AsyncIterator[T], *, rung: bool = False) -> T | None:
        """An engine's next piece, None after the last. Raises EngineStalled if none comes after the first was heard.

        Nothing but the engine is waited for here: a full queue and a tool take as long as they take.
        """
        patience_ms = self._config.stall_ms if self.answering or rung else 0
        try:
            async with asyncio.timeout(patience_ms / 1000 or None):
                return await anext(source, None)
        except TimeoutError:
            self._record.ladder = "stall"
            raise EngineStalled(f"The model or the voice sent nothing for {patience_ms} ms.") from None
