"""Messages on their way to one client, which takes them at its own pace."""

import asyncio
from collections import deque
from collections.abc import Callable


class Outbox:
    """Over `limit` bytes it is full: `on_full` is called, and nothing more is taken."""

    def __init__(self, limit: int, on_full: Callable[[], None]) -> None:
        self._limit = limit
        self._on_full: Callable[[], None] | None = on_full
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        self.closed = False

    def put(self, message: bytes) -> None:
        """Queue a message; nothing happens once it is closed."""
        if self.closed:
            return
        self._bytes += len(message)
        if self._bytes <= self._limit:
            self._messages.append(message)
            self._changed.set()
            return
        on_full = self._on_full
        self._messages.clear()
        self.close()
        if on_full:
            on_full()

    def close(self) -> None:
        """No more messages; those queued are still delivered."""
        self.closed = True
        self._on_full = None  # It knows the client, which knows us.
        self._changed.set()

    async def get(self) -> bytes | None:
        """The next message; None: there will be none."""
        while not self._messages and not self.closed:
            self._changed.clear()
            await self._changed.wait()
        if not self._messages:
            return None
        message = self._messages.popleft()
        self._bytes -= len(message)
        return message
