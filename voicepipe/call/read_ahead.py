"""Reads a model's answer as it is written, however long the voice takes to say it: what ends thoughts that nothing has
opened has to be seen before the caller hears them."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Self

from voicepipe.base.cpu_metering import charged
from voicepipe.base.tasks import ended, forget_how_it_was_cancelled
from voicepipe.engines.base import Delta, StreamCorrection


class ReadAhead:
    """Reads one answer of a language model ahead of its consumer.

    It is an async iterator of the deltas that the engine generates; a task reads them while the context is entered. The
    engine bounds how much that may be. Deltas that the engine withdraws before they were taken never come; only the
    `StreamCorrection` that says so does.
    """

    def __init__(self, deltas: AsyncGenerator[Delta, None], withdraw: Callable[[], None]) -> None:
        """`withdraw` is called as soon as the engine says that what it wrote so far was no answer."""
        self._deltas = deltas
        self._withdraw = withdraw
        self._ready: asyncio.Queue[Delta | Exception] = asyncio.Queue()
        """What is written and not taken yet; behind the last delta the error with which the iterator ends."""
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._reading = asyncio.create_task(charged(self._read()))
        self._reading.add_done_callback(forget_how_it_was_cancelled)
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        reading, self._reading = self._reading, None
        await ended(reading)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        """Raises what the engine raised, once all before that was taken."""
        delta = await self._ready.get()
        if not isinstance(delta, Exception):
            return delta
        self._ready.put_nowait(StopAsyncIteration())
        try:
            raise delta
        finally:
            del delta  # It knows this frame.

    async def _read(self) -> None:
        try:
            async with aclosing(self._deltas) as deltas:
                async for delta in deltas:
                    if delta is StreamCorrection.WITHDRAWN:
                        while not self._ready.empty():
                            self._ready.get_nowait()
                        self._withdraw()
                    self._ready.put_nowait(delta)
            self._ready.put_nowait(StopAsyncIteration())
        except asyncio.CancelledError:
            self._ready.put_nowait(StopAsyncIteration())
            raise
        except Exception as error:
            self._ready.put_nowait(error)
