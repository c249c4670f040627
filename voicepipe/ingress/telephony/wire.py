"""The WebSocket of one media stream: reads valid messages, sends ours, and logs invalid ones."""

import asyncio
import logging

from starlette.websockets import WebSocket, WebSocketDisconnect

from voicepipe.config import LimitsConfig
from voicepipe.ingress.loop_share import CallLoopShare
from voicepipe.ingress.socket_sender import Outbox, SocketSender
from voicepipe.ingress.telephony.dialects import BadMessage, Dialect, StreamError, StreamMessage, StreamStart

logger = logging.getLogger(__name__)

START_S = 10.0
"""Seconds that a provider has to begin the stream; they begin at once."""
MOST_BAD = 10
"""Bad messages of a stream before it is given up, and errors of the provider's that are logged."""


class StreamWire:
    """The accepted WebSocket of exactly one media stream."""

    def __init__(self, socket: WebSocket, dialect: Dialect, limits: LimitsConfig) -> None:
        self._socket = socket
        self._dialect = dialect
        self._sender = SocketSender(socket)
        self._sender.peer.take_at_most(limits.event_bytes)  # A packet of sound takes a hundredth of that.
        self._stream_id = ""
        self._bad = self._troubles = 0
        self._outbox = Outbox(limits.unread_bytes, self._full)
        self.share = CallLoopShare(limits.client_percent)
        """Share of the loop's time for processing its messages."""

    async def start(self) -> StreamStart | None:
        """The message with which the stream begins. None: it does not begin, and the log says why."""
        try:
            async with asyncio.timeout(START_S):
                said = await self.next()
        except TimeoutError:
            logger.warning("%s: a stream did not begin within %g s", self._dialect.kind, START_S)
            return None
        return said[0] if said and isinstance(said[0], StreamStart) else None

    async def next(self) -> tuple[StreamMessage, float] | None:
        """The next message, and the monotonic second at which it reached the socket. None: there is nothing more."""
        while self._bad < MOST_BAD:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return None
            arrived = self._sender.peer.received_at
            try:
                read = self._checked(message.get("text") or message.get("bytes") or b"")
                if read is not None:
                    return read, arrived
            except BadMessage as error:
                self._bad += 1
                logger.warning("%s: a message of stream %.80r %s", self._dialect.kind, self._stream_id, error)
            await self.share.rest(self.slowed)
        logger.warning(
            "%s: stream %.80r is given up after %d such messages", self._dialect.kind, self._stream_id, MOST_BAD
        )
        return None

    def _checked(self, raw: str | bytes) -> StreamMessage | None:
        """The message, if it may come now. Raises BadMessage."""
        said = self._dialect.read(raw)
        if said is None:
            return None
        stream_id, read = said
        if isinstance(read, StreamError):
            self._log_trouble(read)
            return None
        if isinstance(read, StreamStart):
            if self._stream_id:
                raise BadMessage("starts it a second time")
            self._stream_id = read.stream_id
        elif not self._stream_id:
            raise BadMessage("comes before its start")
        elif stream_id and stream_id != self._stream_id:
            raise BadMessage(f"names another stream, {stream_id!r:.80}")
        return read

    def _log_trouble(self, trouble: StreamError) -> None:
        self._troubles += 1
        if self._troubles <= MOST_BAD:
            kind, stream_id = self._dialect.kind, self._stream_id
            logger.error("%s: the provider says about stream %.80r: %.300s", kind, stream_id, trouble.text)

    def say(self, message: bytes) -> None:
        """Queue a message for the provider."""
        self._outbox.put(message)

    async def write(self) -> None:
        """Send until `flush` and until all is sent, then close the socket."""
        await self._sender.write(self._outbox)

    async def refuse(self, code: int) -> None:
        """Close a socket on which nothing was written, with this WebSocket close code."""
        try:
            await self._socket.close(code)
        except (WebSocketDisconnect, RuntimeError):
            return

    async def flush(self, writer: "asyncio.Task[None]") -> None:
        """Give the provider a while to take what is left for it."""
        self._outbox.close()
        await self._sender.flush(writer)

    def _full(self) -> None:
        logger.warning(
            "%s: stream %.80r is dropped: it does not take what it is sent", self._dialect.kind, self._stream_id
        )
        self._sender.peer.abort()

    def slowed(self, why: str) -> None:
        """Log that the provider, or a forger, sends more than its share."""
        logger.warning("%s: stream %.80r is slowed: %s", self._dialect.kind, self._stream_id, why)
