"""Feeds a client's data to a parser in small chunks. One read brings up to 256 kB, and parsing that may take 200 ms."""

import asyncio

LEAST_CHUNK, LARGEST_CHUNK = 512, 4096
"""Bytes that a parser gets in one step of the loop. A frame, a chunk or a header can be 3 bytes long, and its cost
hardly depends on its length."""


class ChunkedParser:
    """Part of a protocol that feeds its parser in chunks. `_decide_reading` alone decides, by what waits, whether the
    socket is read and whether another chunk is due."""

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self._unread = bytearray()
        self._feeding: asyncio.Handle | None = None
        """The next chunk is scheduled."""

    # What a protocol says.

    def _parsing_paused(self) -> bool:
        """Whether nothing more may be parsed for now. When that changes, `_decide_reading`."""
        raise NotImplementedError

    def _size(self) -> int:
        """Bytes of the next chunk."""
        raise NotImplementedError

    def _parse(self, chunk: bytes) -> None:
        """Give a chunk to the parser."""
        raise NotImplementedError

    # What it gets.

    def _came(self, data: bytes) -> None:
        self._unread += data
        if self._feeding is None:
            self._feed()

    def _feed(self) -> None:
        """Give the parser one chunk; the rest follows in other steps of the loop, once the results were taken."""
        self._feeding = None
        if self._unread and not self._parsing_paused():
            chunk = bytes(self._unread[: self._size()])
            del self._unread[: len(chunk)]
            self._parse(chunk)
        self._decide_reading()

    def _decide_reading(self) -> None:
        """Read the socket, or schedule the next chunk, or neither."""
        if self.transport.is_closing():
            self._unread.clear()
        elif self._parsing_paused():
            self.transport.pause_reading()
        elif not self._unread:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()
            if self._feeding is None:
                self._feeding = self.loop.call_soon(self._feed)

    def _forget(self) -> None:
        """Drop what waits: the connection is over."""
        self._unread.clear()
        if self._feeding:
            self._feeding.cancel()
            self._feeding = None
