"""uvicorn's connections with limits: of time for who sends or takes a request slowly, of work for frames."""

import asyncio
import logging
import time
from collections import deque
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Frame
from websockets.http11 import Request

from voicepipe.bucket import Bucket, Rate
from voicepipe.ingress.accept import TOO_MANY
from voicepipe.ingress.refusals import Refusals
from voicepipe.ingress.scope import LINGER, PEER, REFUSALS, VISIT
from voicepipe.ingress.visits import Visit, Visits

CHECK_S = 1.0
"""How often a connection is asked what it is waiting for."""
REQUEST_S = 10.0
"""For a request's line and headers, from the connection's beginning or the last answer."""
BODY_S = 30.0
"""For a request's body: 1 MiB at 280 kbit/s."""
TAKEN_S = 30.0
"""For the client to take something of an answer that waits for it."""
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
READ_AHEAD, PER_MESSAGE = 1024 * 1024, 1024
"""Bytes of messages that may wait for their turn before nothing more is read, and what each takes beside its text."""
LEAST_PIECE, LARGEST_PIECE = 512, 4096
"""Bytes that the parser of frames gets in one step of the loop. A frame can be 6 bytes; its cost hardly depends on its
length."""
FEW_FRAMES = 8
"""In one piece: the next may be larger."""
SMALL_FRAGMENT = 128
"""Bytes: a client that splits its messages makes larger ones."""
SPARE = Rate(1000, 100)
"""Frames that bring next to nothing (pings, pongs, small fragments) at once, and a second: no client needs as many."""
TOO_MANY_FRAMES = "too many pings or small fragments: send some in a minute"

log = logging.getLogger(__name__)
log.setLevel(logging.ERROR)  # uvicorn's own warnings of what strangers send; `Refusals` tells of them


class HttpConnection(H11Protocol):
    """uvicorn's HTTP connection. One timer asks once a second how long it has been waiting, and for what."""

    def __init__(self, config: Config, state: ServerState, visit: Visit, visits: Visits, refusals: Refusals) -> None:
        super().__init__(config, state, {VISIT: visit, REFUSALS: refusals}, asyncio.get_running_loop())
        self.logger = log
        self._visit = visit
        self._visits = visits
        self._refusals = refusals
        self._requests = 0
        """Have come on this connection."""
        self._check: asyncio.TimerHandle | None = None
        self._phase: tuple[object, ...] = ()
        self._since = 0.0
        self._takes = 0
        """How often the client had taken what was kept for it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._visit.over:
            return transport.abort()
        self._visit.drop = transport.abort
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._visits.gone(self._visit)
        self._stop()

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._requests += 1
            self._visits.progress(self._visit)

    def data_received(self, data: bytes) -> None:
        if self.cycle is None or not self.cycle.response_complete or self._may_ask():
            super().data_received(data)

    def on_response_complete(self) -> None:
        self._visits.progress(self._visit)
        pipelined, _ = self.conn.trailing_data
        if not pipelined or self._may_ask():
            super().on_response_complete()

    def _may_ask(self) -> bool:
        """Whether another request is read on this connection, whose first one was counted with it."""
        if self._visits.listens(self._visit.source, time.monotonic()):
            return True
        self._refusals.tell(self._visit.source, "requests from %s are refused: too many", self._visit.source)
        self.transport.write(TOO_MANY)
        self.transport.close()
        return False

    def send_400_response(self, msg: str) -> None:
        self._refusals.tell(self._visit.source, "a request from %s is no HTTP", self._visit.source)
        if self.cycle and not self.cycle.response_complete:  # The application's answer has nowhere to go any more.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._stop()  # The connection is the WebSocket's from here on.
        super().handle_websocket_upgrade(event)

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
        """What this connection waits for, different each time that it gets it, and how many seconds it may."""
        number = self._requests
        if self.transport.is_closing():
            return ("close",), LINGER
        if self.cycle is None or self.cycle.response_complete:
            return ("request", number), REQUEST_S
        if self.flow.write_paused:
            return ("answer is taken", number, self._takes), TAKEN_S
        if self.cycle.more_body:
            return ("body", number), BODY_S
        return ("answer is made", number), float("inf")

    def _end(self) -> None:
        """It took too long. The client is told why if it is not in the middle of an answer."""
        what = str(self._phase[0])
        if what in ("request", "body"):
            self._refusals.tell(self._visit.source, "a connection from %s is closed: its %s did not come in time",
                                self._visit.source, what)  # fmt: skip
            if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
                self.transport.write(TOO_SLOW)
            self.transport.close()
        else:
            self.transport.abort()

    def _stop(self) -> None:
        if self._check:
            self._check.cancel()
            self._check = None


class StampedWebSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, and `scope.Peer` for the connection that it serves.

    uvicorn closes a connection once the client has taken everything; one that never reads would stay for ever. It also
    parses all that one read brought, up to 256 kB, in one step: of pings that is a second in which nobody is heard.
    Here the parser gets small pieces, and a client that floods us with frames is hung up.
    """

    received_at = 0.0

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any]) -> None:
        super().__init__(config, server_state, app_state, asyncio.get_running_loop())
        self.logger = log
        self._visit: Visit = app_state[VISIT]
        self._refusals: Refusals = app_state[REFUSALS]
        self._sizes: deque[int] = deque()
        """Of the messages that wait for their turn."""
        self._waiting = 0
        self._unread = bytearray()
        self._piece = LEAST_PIECE
        self._frames = 0
        """That bring next to nothing, in this piece."""
        self._messages = 0
        """In this piece."""
        self._spare = Bucket(SPARE)
        self._feeding: asyncio.Handle | None = None
        """The next piece is on its way; meanwhile the socket is not read."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._visit.drop = transport.abort

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._visit.left()
        self._unread.clear()
        if self._feeding:
            self._feeding.cancel()
        # Otherwise the parser keeps its last message and the beginning of the next until the collector finds it.
        self.conn.reader.discard()
        self.conn.parser.close()

    # --- what comes

    def data_received(self, data: bytes) -> None:
        self.received_at = time.monotonic()
        if not self._unread and self._feeding is None and len(data) <= self._piece:
            return self._parse(data)
        self._unread += data
        if self._feeding is None:
            self._feed()

    def _feed(self) -> None:
        """Give the parser one piece; the rest in other steps of the loop, once its messages were taken."""
        self._feeding = None
        piece = bytes(self._unread[: self._piece])
        del self._unread[: len(piece)]
        self._parse(piece)

    def _parse(self, piece: bytes) -> None:
        self._frames = self._messages = 0
        super().data_received(piece)
        if self._frames + self._messages > FEW_FRAMES:
            self._piece = LEAST_PIECE
        elif self._piece < LARGEST_PIECE:
            self._piece *= 2
        if self._frames:
            if not self._spare.has(self.loop.time()):
                self._fail()
            self._spare.take(self._frames)
        if self.transport.is_closing():
            self._unread.clear()
        elif self._unread and not self.read_paused:
            self.transport.pause_reading()
            self._feeding = self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._feeding = None
        if self.read_paused:  # `receive` goes on.
            return
        if self._unread:
            self._feed()
        if self._feeding is None and not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def _fail(self) -> None:
        """Hang up, and say why."""
        source = self._visit.source
        self._refusals.tell(source, "a WebSocket from %s is closed: %s", source, TOO_MANY_FRAMES)
        self.conn.fail(1008, TOO_MANY_FRAMES)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()
        self.loop.call_later(LINGER, self.abort)

    def send_receive_event_to_app(self) -> None:
        """A message is complete. uvicorn reads nothing while one waits; but a minute of sound takes its time, and who
        does not read sees neither pings nor the answers to its own."""
        size, before = sum(map(len, self.frames)) + PER_MESSAGE, self.queue.qsize()
        super().send_receive_event_to_app()
        self._messages += 1
        if self.queue.qsize() > before:
            self._sizes.append(size)
            self._waiting += size
            self._read_on()

    def _read_on(self) -> None:
        if self.read_paused and self._waiting <= READ_AHEAD and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()

    async def receive(self) -> Any:
        message = await super().receive()
        if message["type"] == "websocket.receive":
            self._waiting -= self._sizes.popleft()
            self._read_on()
        if (self._unread or self._feeding) and not self.read_paused and not self.transport.is_closing():
            self.transport.pause_reading()  # Reading has just been resumed.
            if self._feeding is None:
                self._feeding = self.loop.call_soon(self._go_on)
        return message

    def handle_ping(self) -> None:
        self._frames += 1
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()  # Thrown away: a client that takes nothing gets no pongs (RFC 6455, 5.5.3).

    def handle_pong(self, event: Frame) -> None:
        self._frames += 1
        super().handle_pong(event)

    def handle_cont(self, event: Frame) -> None:
        self._frames += len(event.data) < SMALL_FRAGMENT and not event.fin
        super().handle_cont(event)

    # --- the connection

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["extensions"][PEER] = self  # type: ignore[assignment]
        else:
            self.loop.call_later(LINGER, self.abort)

    def keepalive_timeout(self) -> None:
        if (self.read_paused or self._feeding) and self.ping_timeout:  # Its answer may be among what we have not read.
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
            return
        super().keepalive_timeout()
        self.abort()

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True  # A refusal is an answer, too: uvicorn would log a failure.
        elif message["type"] == "websocket.accept":
            if VISIT in self.scope["state"]:  # Otherwise somebody has taken it (`take_visit`).
                self._visit.accepted()
        elif message["type"] == "websocket.close" and self._unread and self._feeding is None:
            self._feeding = self.loop.call_soon(self._go_on)  # The client's own goodbye may be among it.

    async def run_asgi(self) -> None:
        await super().run_asgi()
        self.scope["extensions"].pop(PEER, None)  # We know the scope, so it must not know us for longer than the call.
        self.loop.call_later(LINGER, self.abort)

    def take_at_most(self, message_bytes: int) -> None:
        self.conn.max_message_size = message_bytes

    def abort(self) -> None:
        self.transport.abort()
