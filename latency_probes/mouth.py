"""What a caller says, block by block and in time: speech over the room's noise, the noise alone, or what they hear."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from latency_probes.sound import BED_BLOCKS, ECHO_GAIN, bed, mixed
from latency_probes.timeline import BLOCK, Timeline
from voicepipe.audio import BLOCK_MS, Pcm

T = TypeVar("T")


class Mouth(Generic[T]):
    """`encode` makes of a block what is sent; `idle` is the room's noise alone, so encoded: most of a call is silence.

    `noise` and `seed` choose the room's noise.
    """

    def __init__(
        self, timeline: Timeline, noise: str, seed: int, encode: Callable[[Pcm], T], idle: Sequence[T]
    ) -> None:
        self.lag_s = 0.0
        """The most by which a block left later than its time."""
        self.echo_ms: float | None = None
        """What was played so long ago comes back at -20 dB; None: nothing does."""
        self._timeline = timeline
        self._noise = bed(noise, seed)
        self._encode = encode
        self._idle = idle
        self._blocks: deque[T] = deque()
        self._taken = 0
        self._started = 0.0

    def say(self, pcm: Pcm) -> int:
        """As `Caller.say`."""
        block = self._taken + len(self._blocks)
        # Mixed and encoded here, once, so that sending a block is nothing but sending.
        whole = np.pad(pcm, (0, -pcm.size % BLOCK))
        loud = mixed(whole, self._noise, block % BED_BLOCKS * BLOCK)
        self._blocks.extend(self._encode(part) for part in loud.reshape(-1, BLOCK))
        return block * BLOCK

    async def speak(self, send: Callable[[T], Awaitable[None]]) -> None:
        """A block every 20 ms, for ever; `Timeline.sent` says when."""
        start = self._started = time.monotonic()
        sent = self._timeline.sent
        while True:
            due = start + len(sent) * BLOCK_MS / 1000
            await asyncio.sleep(due - time.monotonic())
            self.lag_s = max(self.lag_s, time.monotonic() - due)
            await send(self._next())
            sent.append(time.monotonic())

    def _next(self) -> T:
        block = self._taken
        self._taken += 1
        if self._blocks:
            return self._blocks.popleft()
        if self.echo_ms is None:
            return self._idle[block % BED_BLOCKS]
        # By the clock of the samples: rooms delay all blocks by the same, however late this loop wakes.
        second = self._started + block * BLOCK_MS / 1000 - self.echo_ms / 1000
        heard = self._timeline.played(second, BLOCK)
        return self._encode(mixed((heard * ECHO_GAIN).astype(np.int16), self._noise, block % BED_BLOCKS * BLOCK))


class Talker(ABC, Generic[T]):
    """What callers of every kind do alike. Its tasks run from `dial` on: the mouth, and one that ends with the call."""

    def __init__(self, timeline: Timeline, mouth: Mouth[T]) -> None:
        self.timeline = timeline
        self._mouth = mouth
        self._tasks: list[asyncio.Task[None]] = []

    @abstractmethod
    async def _disconnect(self) -> None:
        """Safe to call where there is no connection."""

    @abstractmethod
    async def _cut(self) -> None:
        """The same, but without a word to the server."""

    def say(self, pcm: Pcm) -> int:
        """See `Caller.say`."""
        return self._mouth.say(pcm)

    def echo(self, delay_ms: float | None) -> None:
        """See `Caller.echo`."""
        self._mouth.echo_ms = delay_ms

    def worst_lag(self) -> float:
        """See `Caller.worst_lag`."""
        return self._mouth.lag_s

    def hung_up(self) -> bool:
        """See `Caller.hung_up`."""
        return not self._tasks or any(task.done() for task in self._tasks)

    async def hang_up(self) -> None:
        """See `Caller.hang_up`."""
        ends = await self._silent()
        await self._disconnect()
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def drop(self) -> None:
        """See `Caller.drop`."""
        await self._silent()
        await self._cut()

    async def _silent(self) -> list[None | BaseException]:
        """Say and hear nothing from now on; how the tasks ended."""
        for task in self._tasks:
            task.cancel()
        ends = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        return ends
