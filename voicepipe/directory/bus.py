"""The bus between PoPs and directories: messages on subjects, for whoever listens at that moment.

Nothing is stored. What a message says is soon said again (reports) or soon forgotten (assignments), so one that is lost
costs a second. `MemoryBus` serves directory and PoPs in one process; `nats_bus.py` serves those of many hosts.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import NamedTuple, Protocol

import msgspec

logger = logging.getLogger(__name__)

WAITING = 4096
"""Messages that a listener may have waiting; beyond that the oldest is dropped."""


class BusMessage(NamedTuple):
    """A message that was published."""

    subject: str
    """The subject names the publisher: the bus lets each PoP publish on its own subjects only."""
    data: bytes


@contextmanager
def decoding(message: BusMessage) -> Iterator[None]:
    """Decodes a message within the context. One that cannot be read is logged and has no effect."""
    try:
        yield
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        logger.warning("%s: a message cannot be read, is it of another version? %s", message.subject, error)


class Bus(Protocol):
    """Carries messages between PoPs and directories. Subjects are words with dots between them. In a pattern "*" stands
    for one word, and ">" for all that follow. Implemented by `NatsBus`, and in one process `MemoryBus`.
    """

    async def publish(self, subject: str, data: bytes) -> None:
        """Publish to those who listen now. While the bus cannot be reached, nothing is sent and nothing raised."""

    def listen(self, *patterns: str) -> AbstractAsyncContextManager[AsyncIterator[BusMessage]]:
        """Yields what is published within the context. A listener that is slow loses the oldest messages."""

    def is_connected(self) -> bool:
        """Whether the bus is reachable at present."""


class MemoryBus:
    """A bus within one process."""

    def __init__(self) -> None:
        self._listeners: list[tuple[tuple[str, ...], asyncio.Queue[BusMessage]]] = []

    async def publish(self, subject: str, data: bytes) -> None:
        for patterns, waiting in self._listeners:
            if any(matches(pattern, subject) for pattern in patterns):
                put(waiting, BusMessage(subject, data))

    @asynccontextmanager
    async def listen(self, *patterns: str) -> AsyncIterator[AsyncIterator[BusMessage]]:
        waiting = asyncio.Queue[BusMessage](WAITING)
        listener = (patterns, waiting)
        self._listeners.append(listener)
        try:
            yield taken(waiting)
        finally:
            self._listeners.remove(listener)

    def is_connected(self) -> bool:
        return True


def matches(pattern: str, subject: str) -> bool:
    """Whether the subject matches the pattern."""
    wanted, words = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted.pop()
        if len(words) <= len(wanted):
            return False
        words = words[: len(wanted)]
    return len(wanted) == len(words) and all(want in ("*", word) for want, word in zip(wanted, words, strict=True))


def put(waiting: asyncio.Queue[BusMessage], message: BusMessage) -> None:
    """Put a message into a listener's queue; where that is full, its oldest message is dropped."""
    if waiting.full():
        waiting.get_nowait()
    waiting.put_nowait(message)


async def taken(waiting: asyncio.Queue[BusMessage]) -> AsyncIterator[BusMessage]:
    """The messages of the queue, for ever."""
    while True:
        yield await waiting.get()
