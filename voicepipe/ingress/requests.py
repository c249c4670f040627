"""h11, and a transport, for uvicorn's HTTP connection: h11's work is counted, and answers do not close the socket too
early."""

import asyncio
from collections.abc import Callable
from typing import Any

import h11

SMALL_CHUNK = 128
"""Bytes: a client that splits its body makes larger chunks."""
TOO_MANY_LINES = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain\r\nContent-Length: 38\r\n"
    b"Connection: close\r\n\r\nToo many headers: send 100 at the most"
)
TOO_MANY_CHUNKS = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 39\r\n"
    b"Connection: close\r\n\r\nToo many small chunks: send larger ones"
)


class Requests(h11.Connection):
    """Reads HTTP requests and writes their answers. An answer that begins before its request's body is complete ends
    the connection, and says so: to keep it, we would have to parse a body that nobody needs."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER)
        self.small_chunks = 0
        """Small chunks that have come since the count was last taken."""
        self._chunked = False
        """The body of the latest request is chunked."""

    def next_event(self) -> Any:
        event = super().next_event()
        if type(event) is h11.Request:
            self._chunked = any(name == b"transfer-encoding" for name, _ in event.headers)
        elif type(event) is h11.Data and event.chunk_start and event.chunk_end and len(event.data) < SMALL_CHUNK:
            self.small_chunks += 1
        return event

    def send(self, event: Any) -> Any:
        if type(event) is h11.Response and self.their_state is h11.SEND_BODY:
            headers = [*event.headers, (b"Connection", b"close")]
            event = h11.Response(status_code=event.status_code, headers=headers, reason=event.reason)
        return super().send(event)

    @property
    def in_plain_body(self) -> bool:
        """Whether what comes next is body of a known length, which needs no parsing."""
        return self.their_state is h11.SEND_BODY and not self._chunked

    def lines_waiting(self) -> int:
        """Lines of headers or trailers that are not complete: they cost nothing until their end comes, and then all at
        once."""
        if self.their_state not in (h11.IDLE, h11.SEND_BODY):  # Then it is the next request, and waits for its turn.
            return 0
        waiting, _ = self.trailing_data
        return waiting.count(b"\n")


class AnswerTransport:
    """The transport for uvicorn's answers. Its connection decides whether the socket is read, and how it is closed."""

    def __init__(
        self, transport: asyncio.Transport, decide_reading: Callable[[], None], close: Callable[[], None]
    ) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.pause_reading = self.resume_reading = decide_reading
        self.close = close

    def drop(self) -> None:
        """Let go of the connection, which has closed, so that its last answer does not keep it in memory."""
        self.pause_reading = self.resume_reading = self.close = lambda: None
