"""uvicorn's HTTP connection with limits: of time for slow clients, of work for parsing."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from voicepipe.base.token_bucket import Bucket, Rate
from voicepipe.ingress.accept import TOO_MANY
from voicepipe.ingress.asgi_scope import LINGER, REFUSALS, VISIT
from voicepipe.ingress.chunked_parser import LARGEST_CHUNK, LEAST_CHUNK, ChunkedParser
from voicepipe.ingress.refusal_log import RefusalLog
from voicepipe.ingress.visits import Visit, Visits, VisitState

CHECK_S = 1.0
"""Seconds between looks at what a connection waits for."""
REQUEST_S = 10.0
"""Seconds for a request's line and headers, from the connection's beginning or the last answer."""
BODY_S = 30.0
"""Seconds for a request's body: 1 MiB at 280 kbit/s."""
TAKEN_S = 30.0
"""Seconds in which the client has to take something of an answer that waits for it."""
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
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
FEW_LINES = 64
"""Lines in one chunk of HTTP: with more of them the next chunk is small."""
MOST_LINES = 128
"""Most lines of headers or of trailers. websockets takes as many headers."""
CHUNKS = Rate(200, 100)
"""Chunks of a request's body with next to no data that are allowed at once, and a second."""

log = logging.getLogger(__name__)
log.setLevel(logging.ERROR)  # uvicorn's own warnings of what strangers send; `RefusalLog` has them


class RequestParser(h11.Connection):
    """Reads HTTP requests and writes their answers. An answer that begins before its request's body is complete ends
    the connection, and says so: to keep it, we would have to parse a body that nobody needs."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER)
        self.small_chunks = 0
        """Small chunks that have come since the count was last taken."""
        self._chunked = False
        """The body of the latest request is chunked."""
        self.is_last = False
        """Each answer ends the connection, and says so."""

    def next_event(self) -> Any:
        event = super().next_event()
        if type(event) is h11.Request:
            self._chunked = any(name == b"transfer-encoding" for name, _ in event.headers)
        elif type(event) is h11.Data and event.chunk_start and event.chunk_end and len(event.data) < SMALL_CHUNK:
            self.small_chunks += 1
        return event

    def send(self, event: Any) -> Any:
        if type(event) is h11.Response and (self.is_last or self.their_state is h11.SEND_BODY):
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


class HttpConnection(ChunkedParser, H11Protocol):
    """An HTTP connection of uvicorn's, with limits. A timer checks once a second how long it has been waiting, and for
    what. The parser gets small chunks, and nothing more once an answer has come before its request's end."""

    def __init__(self, config: Config, state: ServerState, visit: Visit, visits: Visits, refusals: RefusalLog) -> None:
        ChunkedParser.__init__(self)
        H11Protocol.__init__(self, config, state, {VISIT: visit, REFUSALS: refusals}, asyncio.get_running_loop())
        self.conn: RequestParser = RequestParser()
        self.logger = log
        self._visit = visit
        self._visits = visits
        self._refusals = refusals
        self._requests = 0
        """Requests that have come on this connection."""
        self._asked = False
        """The next request has begun and was counted."""
        self._over = False
        """Nothing more is parsed: the connection ends once the client has its answer, or it is a WebSocket's."""
        self._chunks = Bucket(CHUNKS)
        self._answers: AnswerTransport
        self._check: asyncio.TimerHandle | None = None
        self._phase: tuple[object, ...] = ()
        self._since = 0.0
        self._takes = 0
        """How often the client had taken what was kept for it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._answers = AnswerTransport(transport, self._decide_reading, self._close)
        self.flow = FlowControl(self._answers)  # type: ignore[arg-type]
        if self._visit.state is VisitState.OVER:
            return transport.abort()
        self._visit.drop = transport.abort
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._visits.gone(self._visit)
        self._leave()

    def retire(self) -> None:
        """Serve at most one more request."""
        self.conn.is_last = True

    def close_idle(self) -> None:
        """End the connection if it has had a request, and waits for another."""
        if self.cycle is not None and self.cycle.response_complete and not self._asked and not self._over:
            self.transport.close()

    # --- what comes

    def data_received(self, data: bytes) -> None:
        if not self._over:
            self._came(data)

    def _parsing_paused(self) -> bool:
        return self.flow.read_paused

    def _size(self) -> int:
        many_lines = not self.conn.in_plain_body and self._unread.count(b"\n", 0, LARGEST_CHUNK) > FEW_LINES
        return LEAST_CHUNK if many_lines else LARGEST_CHUNK

    def _parse(self, chunk: bytes) -> None:
        if self.cycle is not None and self.cycle.response_complete and not self._asked:
            if not self._may_ask():
                return
            self._asked = True
        super().data_received(chunk)
        self._judge()

    def _decide_reading(self) -> None:
        if not self._over:
            super()._decide_reading()

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self.cycle.transport = self._answers  # type: ignore[assignment]
            self._asked = False
            self._requests += 1
            self._visits.progress(self._visit)

    def _judge(self) -> None:
        """Refuse what costs much more to parse than to send."""
        if self._over or self.transport.is_closing():
            return
        if self.conn.lines_waiting() > MOST_LINES:
            return self._refuse(TOO_MANY_LINES, "has too many headers")
        if chunks := self.conn.small_chunks:
            self.conn.small_chunks = 0
            if not self._chunks.has(self.loop.time()):
                return self._refuse(TOO_MANY_CHUNKS, "has too many small chunks")
            self._chunks.take(chunks)

    def _may_ask(self) -> bool:
        """Whether another request is read on this connection, whose first one was counted with it."""
        if self._visits.listens(self._visit.source, time.monotonic()):
            return True
        self._refusals.log(self._visit.source, "requests from %s are refused: too many", self._visit.source)
        self.transport.write(TOO_MANY)
        self.transport.close()
        return False

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._leave()  # The connection is the WebSocket's from here on.
        super().handle_websocket_upgrade(event)

    # --- answers

    def on_response_complete(self) -> None:
        self._visits.progress(self._visit)
        if self._over:
            return
        pipelined, _ = self.conn.trailing_data
        if not pipelined or self._may_ask():
            self._asked = bool(pipelined)
            super().on_response_complete()
            self._judge()

    def send_400_response(self, msg: str) -> None:
        self._refusals.log(self._visit.source, "a request from %s is no HTTP", self._visit.source)
        self._give_up_answer()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def _refuse(self, answer: bytes, why: str) -> None:
        self._refusals.log(self._visit.source, "a request from %s %s", self._visit.source, why)
        self._give_up_answer()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(answer)
            self._linger()
        else:
            self.transport.abort()

    def _give_up_answer(self) -> None:
        """Drop the application's answer: the client is gone."""
        if self.cycle and not self.cycle.response_complete:
            self.cycle.disconnected, self.cycle.waiting_for_100_continue = True, False
            self.cycle.message_event.set()

    def _close(self) -> None:
        """The last answer was sent: close the connection."""
        if self.cycle.more_body:
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        """End the connection, but not at once: as long as its client sends, the system would answer with a reset, and
        the client might never see our answer. What comes is thrown away."""
        if self._over or self.transport.is_closing():
            return
        self._over = True
        self._forget()
        self.transport.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()

    # --- time

    def resume_writing(self) -> None:
        self._takes += 1
        super().resume_writing()

    def _look(self) -> None:
        now = self.loop.time()
        phase, allowed_s = self._waiting_for()
        if phase != self._phase:
            self._phase, self._since = phase, now
        elif now - self._since >= allowed_s:
            self._end()
        self._check = self.loop.call_later(CHECK_S, self._look)

    def _waiting_for(self) -> tuple[tuple[object, ...], float]:
        """What this connection waits for, which is different each time that it gets it, and how many seconds it may
        wait."""
        number = self._requests
        if self._over or self.transport.is_closing():
            return ("close",), LINGER
        if self.cycle is None or self.cycle.response_complete:
            return ("request", number), REQUEST_S
        if self.flow.write_paused:
            return ("answer is taken", number, self._takes), TAKEN_S
        if self.cycle.more_body:
            return ("body", number), BODY_S
        return ("answer is made", number), float("inf")

    def _end(self) -> None:
        """The connection took too long: end it. The client gets the reason, unless it is in the middle of an answer."""
        what = str(self._phase[0])
        if what in ("request", "body"):
            self._refusals.log(self._visit.source, "a connection from %s is closed: its %s did not come in time",
                                self._visit.source, what)  # fmt: skip
            if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
                self.transport.write(TOO_SLOW)
            self.transport.close()
        else:
            self.transport.abort()

    def _leave(self) -> None:
        """The connection is handed over, for instance to a WebSocket's protocol."""
        self._over = True
        self._forget()
        self._answers.drop()
        if self._check:
            self._check.cancel()
            self._check = None
