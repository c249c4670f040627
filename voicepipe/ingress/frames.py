"""uvicorn's WebSocket with limits: of work for parsing, of time for clients that do not answer or do not read."""

import asyncio
import logging
import socket
import struct
import time
from collections import deque
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Frame
from websockets.http11 import Request
from websockets.protocol import State

from voicepipe.base.token_bucket import Bucket, Rate
from voicepipe.ingress.asgi_scope import LINGER, PEER, REFUSALS, VISIT
from voicepipe.ingress.chunked_parser import LARGEST_CHUNK, LEAST_CHUNK, ChunkedParser
from voicepipe.ingress.refusal_log import RefusalLog
from voicepipe.ingress.visits import Visit

READ_AHEAD, PER_MESSAGE = 1024 * 1024, 1024
"""Bytes of messages that may wait for their turn before nothing more is read, and bytes that each takes besides its
text."""
FEW_FRAMES = 8
"""Frames in one chunk: with fewer of them the next chunk may be larger."""
SMALL_FRAGMENT = 128
"""Bytes of a small fragment: a client that splits its messages makes larger ones."""
SPARE = Rate(1000, 100)
"""Frames with next to no data (pings, pongs, small fragments) that are allowed at once, and a second: no client needs
as many."""
SLOWEST = 1000
"""Bytes a second at which a client counts as alive although it has not answered our ping. Sound takes eight times as
much. A letter now and then is not enough: it would hold a call's slot, and the beginning of a large message."""
TOO_MANY_FRAMES = "too many pings or small fragments: send some in a minute"
NO_UTF_8 = "a text message is not UTF-8"

log = logging.getLogger(__name__)
log.setLevel(logging.ERROR)  # uvicorn's own warnings of what strangers send; `RefusalLog` has them
_RTT, _LEAST_RTT = 68, 148
"""Offsets in the kernel's `struct tcp_info` (uapi/linux/tcp.h, since 4.6)."""
_MICROSECONDS = struct.Struct("=I")
_NEVER = 0xFFFFFFFF


class WebSocketConnection(ChunkedParser, WebSocketsSansIOProtocol):
    """A WebSocket of uvicorn's, with limits, and the `asgi_scope.Peer` of its connection.

    uvicorn closes a connection once the client has taken everything; one that never reads would stay for ever. It also
    parses all that one read brought, up to 256 kB, in one step: with pings that is a second in which no call gets
    sound. Here the parser gets small chunks, and a client that floods us with frames is disconnected."""

    received_at = 0.0
    closed_for = ""

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any]) -> None:
        ChunkedParser.__init__(self)
        WebSocketsSansIOProtocol.__init__(self, config, server_state, app_state, asyncio.get_running_loop())
        self.logger = log
        self._visit: Visit = app_state[VISIT]
        self._refusals: RefusalLog = app_state[REFUSALS]
        self._sizes: deque[int] = deque()
        """Sizes in bytes of the messages that wait for their turn."""
        self._waiting = 0
        self._chunk_bytes = LEAST_CHUNK
        self._frames = 0
        """Frames with next to no data in this chunk."""
        self._messages = 0
        """Messages in this chunk."""
        self._spare = Bucket(SPARE)
        self._rtt_ms: float | None = None
        self._received = self._looked = 0
        """Bytes received: in all, and at the time of our last ping or of its answer's last absence."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._visit.drop = transport.abort

    def eof_received(self) -> None:
        self._measure()
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._visit.left()
        self._forget()
        # Otherwise the parser keeps its last message and the beginning of the next until the collector finds it.
        self.conn.reader.discard()
        self.conn.parser.close()
        if self.conn.handshake_exc:
            self.conn.handshake_exc.__traceback__ = None  # Its frames know this connection.

    # --- what comes

    def data_received(self, data: bytes) -> None:
        self.received_at = time.monotonic()
        self._received += len(data)
        self._came(data)

    def _parsing_paused(self) -> bool:
        """uvicorn reads nothing while one message waits. But a minute of sound takes its time to process, and meanwhile
        neither pings nor the answers to our own would be read."""
        return self._waiting > READ_AHEAD and not self.close_sent

    def _size(self) -> int:
        return self._chunk_bytes

    def _parse(self, chunk: bytes) -> None:
        self._frames = self._messages = 0
        super().data_received(chunk)
        if self._frames + self._messages > FEW_FRAMES:
            self._chunk_bytes = LEAST_CHUNK
        elif self._chunk_bytes < LARGEST_CHUNK:
            self._chunk_bytes *= 2
        if self._frames:
            if not self._spare.has(self.loop.time()):
                self._fail(1008, TOO_MANY_FRAMES)
            self._spare.take(self._frames)
        if self.conn.handshake_exc and not self.transport.is_closing():
            self._refuse_handshake(self.conn.handshake_exc)

    def _fail(self, code: int, why: str) -> None:
        """Close the WebSocket with this close code of RFC 6455, and say why."""
        source, self.closed_for = self._visit.source, why
        self._refusals.log(source, "a WebSocket from %s is closed: %s", source, why)
        self.conn.fail(code, why)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()
        self.loop.call_later(LINGER, self.abort)

    def send_receive_event_to_app(self) -> None:
        """Replaces uvicorn's, which reads no further while one message waits (`_decide_reading` does, unless enough
        waits), and writes a traceback into the log for a text that is not UTF-8."""
        data, self.frames = self.frames[0] if len(self.frames) == 1 else b"".join(self.frames), []
        self._messages += 1
        if self.close_sent:
            return
        if self.curr_msg_data_type == "bytes":
            self.queue.put_nowait({"type": "websocket.receive", "bytes": data})
        else:
            try:
                self.queue.put_nowait({"type": "websocket.receive", "text": data.decode()})
            except UnicodeDecodeError:
                return self._fail(1007, NO_UTF_8)
        self._sizes.append(len(data) + PER_MESSAGE)
        self._waiting += self._sizes[-1]

    async def receive(self) -> Any:
        message = await super().receive()
        if message["type"] == "websocket.receive":
            paused = self._parsing_paused()
            self._waiting -= self._sizes.popleft()
            if paused:
                self._decide_reading()
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

    def handle_close(self, event: Frame) -> None:
        self._measure()
        super().handle_close(event)

    # --- the connection

    @property
    def address(self) -> str:
        return self._visit.source

    @property
    def rtt_ms(self) -> float | None:
        self._measure()
        return self._rtt_ms

    def _measure(self) -> None:
        """Take the measurements of the connection. To be called before it is closed: afterwards its descriptor may be
        another's."""
        if not self._visit.by_proxy and not self.transport.is_closing():
            self._rtt_ms = tcp_rtt_ms(self.transport.get_extra_info("socket")) or self._rtt_ms

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["extensions"][PEER] = self  # type: ignore[assignment]
        else:
            self.loop.call_later(LINGER, self.abort)

    def _refuse_handshake(self, error: Exception) -> None:
        """websockets rejects the handshake: uvicorn would neither say so nor close the connection."""
        source = self._visit.source
        self._refusals.log(source, "a WebSocket handshake from %s is refused: %s", source, error)
        answer = b"".join(self.conn.data_to_send())  # Empty, unless a line was too long or there were too many.
        self.transport.write(answer or self.conn.reject(400, f"{error}.\n").serialize())
        self.transport.close()
        self.loop.call_later(LINGER, self.abort)

    def send_keepalive_ping(self) -> None:
        super().send_keepalive_ping()
        self._looked = self._received

    def keepalive_timeout(self) -> None:
        if self.ping_timeout and self._may_answer_yet(self.ping_timeout):
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
            return
        self.closed_for = "it answers no ping"
        super().keepalive_timeout()
        self.abort()

    def handle_parser_exception(self) -> None:
        """The client sent something that is no WebSocket frame, or is too long."""
        if frame := self.conn.close_sent:
            self.closed_for = frame.reason or f"close code {frame.code}"
        super().handle_parser_exception()

    def _may_answer_yet(self, seconds: float) -> bool:
        """Whether an answer to our ping may still come, though none has for so long: it may be among what we have not
        read, or wait at the client's end of a slow line until a large message has gone out."""
        since, self._looked = self._received - self._looked, self._received
        return since >= SLOWEST * seconds or self._parsing_paused() or bool(self._unread)

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True  # A refusal is an answer, too: uvicorn would log a failure.
        elif message["type"] == "websocket.accept":
            if VISIT in self.scope["state"]:  # Otherwise somebody has taken it (`take_visit`).
                self._visit.accepted()
        elif message["type"] == "websocket.close":
            self._decide_reading()  # The client's own goodbye may be among what waits.

    async def run_asgi(self) -> None:
        await super().run_asgi()
        self.scope["extensions"].pop(PEER, None)  # We know the scope, so it must not know us for longer than the call.
        self.loop.call_later(LINGER, self.abort)

    def take_at_most(self, message_bytes: int) -> None:
        self.conn.max_message_size = message_bytes

    def abort(self) -> None:
        self.transport.abort()

    def shutdown(self) -> None:
        """The server stops. Where the client has said goodbye already, uvicorn's would fail, and the whole server."""
        self.close_sent = self.close_sent or self.conn.state in (State.CLOSING, State.CLOSED)
        super().shutdown()


def tcp_rtt_ms(sock: Any) -> float | None:
    """Round-trip time in ms: the shortest of the last minutes, which no full buffer has lengthened, or else the
    smoothed one. None: the system does not report it, or `sock` is no open TCP socket."""
    option: int | None = getattr(socket, "TCP_INFO", None)
    if option is None or sock is None:
        return None
    try:
        info: bytes = sock.getsockopt(socket.IPPROTO_TCP, option, 256)
    except (OSError, ValueError):  # It is closed, or of another kind.
        return None
    for offset in (_LEAST_RTT, _RTT):
        if len(info) >= offset + _MICROSECONDS.size:
            (microseconds,) = _MICROSECONDS.unpack_from(info, offset)
            if microseconds not in (0, _NEVER):
                return float(microseconds) / 1000
    return None
