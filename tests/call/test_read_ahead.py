"""A model's answer is read as it is written, however late it is taken."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from voicepipe.base.errors import EngineError
from voicepipe.call.read_ahead import ReadAhead
from voicepipe.engines.base import Delta, StreamCorrection

pytestmark = pytest.mark.virtual_time


class Answer:
    """What a model writes, a delta each 100 ms; what it fails with comes last."""

    def __init__(self, *deltas: Delta | BaseException) -> None:
        self.written: list[Delta] = []
        self.closed = False
        self.withdrawn = 0
        self._deltas = deltas

    async def write(self) -> AsyncGenerator[Delta, None]:
        try:
            for delta in self._deltas:
                await asyncio.sleep(0.1)
                if isinstance(delta, BaseException):
                    raise delta
                self.written.append(delta)
                yield delta
        finally:
            self.closed = True

    def ahead(self) -> ReadAhead:
        return ReadAhead(self.write(), self.withdraw)

    def withdraw(self) -> None:
        self.withdrawn += 1


async def test_it_is_written_on_while_nobody_takes_it() -> None:
    answer = Answer("We ", "are ", "open.")
    async with answer.ahead() as deltas:
        assert await anext(deltas) == "We "
        await asyncio.sleep(1)
        assert answer.written == ["We ", "are ", "open."] and answer.closed
        assert [delta async for delta in deltas] == ["are ", "open."]


async def test_what_is_withdrawn_before_it_was_taken_never_comes() -> None:
    answer = Answer("Hm, ", "they ask. ", StreamCorrection.WITHDRAWN, "We are open.")
    async with answer.ahead() as deltas:
        assert await anext(deltas) == "Hm, "
        await asyncio.sleep(1)
        assert answer.withdrawn == 1
        assert [delta async for delta in deltas] == [StreamCorrection.WITHDRAWN, "We are open."]


async def test_an_engine_that_cancels_itself_ends_the_answer() -> None:
    async with Answer("We ", asyncio.CancelledError()).ahead() as deltas:
        assert [delta async for delta in deltas] == ["We "]


async def test_an_error_comes_once_behind_all_that_was_written_before() -> None:
    async with Answer("We ", EngineError("it broke")).ahead() as deltas:
        await asyncio.sleep(1)
        assert await anext(deltas) == "We "
        with pytest.raises(EngineError, match="it broke"):
            await anext(deltas)
        with pytest.raises(StopAsyncIteration):
            await anext(deltas)


async def test_who_leaves_ends_the_answer() -> None:
    answer = Answer(*["word "] * 100)
    async with answer.ahead() as deltas:
        assert await anext(deltas) == "word "
    assert answer.closed and len(answer.written) == 1
