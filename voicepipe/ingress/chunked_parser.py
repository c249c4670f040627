"""What a client sends, for a parser in small pieces. One read brings up to 256 kB, and parsing that may take 200 ms."""

import asyncio

LEAST_PIECE, LARGEST_PIECE = 512, 4096
"""Bytes that a parser gets in one step of the loop. What it makes of them (a frame, a chunk, a header) can be 3 bytes
long, and its cost hardly depends on its length."""


class ChunkedParser:
    """Part of a protocol: what waits for its parser. Whether the socket is read, and whether another piece is due,
    follows from what waits, in `_decide_reading` alone."""

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self._unread = bytearray()
        self._feeding: asyncio.Handle | None = None
        """The next piece is on its way."""

    # What a protocol says.

    def _parsing_paused(self) -> bool:
        """Whether nothing more may be parsed for now. When that changes, `_decide_reading`."""
        raise NotImplementedError

    def _size(self) -> int:
        """Bytes of the next piece."""
        raise NotImplementedError

    def _parse(self, piece: bytes) -> None:
        """Give it to the parser."""
        raise NotImplementedError

    # What it gets.

    def _came(self, data: bytes) -> None:
        self._unread += data
        if self._feeding is None:
            self._feed()

    def _feed(self) -> None:
        """Give the parser one piece; the rest in other steps of the loop, once what it brought was taken."""
        self._feeding = None
        if self._unread and not self._parsing_paused():
            piece = bytes(self._unread[: self._size()])
            del self._unread[: len(piece)]
            self._parse(piece)
        self._decide_reading()

    def _decide_reading(self) -> None:
        """Read the socket, or see to the next piece, or neither."""
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
        """What waits is nobody's any more."""
        self._unread.clear()
        if self._feeding:
            self._feeding.cancel()
            self._feeding = None
