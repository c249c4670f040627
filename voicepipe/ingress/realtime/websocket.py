"""One Realtime WebSocket: reads, writes, times out, ends the call. `control` and `translate` know what is said."""

import asyncio
import logging
import time
from collections import deque
from typing import NamedTuple, Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect

from voicepipe.agent import CallSettings
from voicepipe.call_api import Seat
from voicepipe.config import LimitsConfig
from voicepipe.ingress.realtime import server_events as wire
from voicepipe.ingress.realtime.control import Control
from voicepipe.ingress.realtime.errors import WireError
from voicepipe.ingress.realtime.items import fresh_id
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.realtime.translate import Translator
from voicepipe.turn.events import CallEnded, CallEvent

logger = logging.getLogger(__name__)

PEER = "voicepipe.peer"
"""Key of the `Peer` in the ASGI scope's extensions."""

LINGER = 5.0
"""Seconds that a call has to end once its caller is gone, and that a client has to take what is left for it."""


class Peer(Protocol):
    """What only the server below ASGI knows of a connection and can do to it."""

    received_at: float
    """Monotonic second at which bytes last arrived."""

    def abort(self) -> None:
        """Drop the connection without waiting for the client to take what it was sent."""


class Goodbye(NamedTuple):
    """How a connection closes. Without `code` there was no error."""

    close: int
    code: str = ""
    message: str = ""


_GOODBYES = {
    "caller": Goodbye(1000),
    "agent": Goodbye(1000),
    "no_input": Goodbye(1000),
    "max_length": Goodbye(1001, "session_expired", "Your session hit the maximum duration."),
    "idle": Goodbye(1001, "session_idle", "Nothing was heard from the client for too long."),
    "shutdown": Goodbye(1012, "server_shutdown", "The server is going down."),
    "error": Goodbye(1011, "server_error", "The server failed on this call."),
}


class Outbox:
    """Messages for a client that takes them at its own pace. Over `limit` bytes it is full: then the call is over."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        self.closed = False

    def put(self, message: bytes) -> bool:
        """Queue a message; False: it did not fit, and nothing will any more."""
        if self.closed:
            return True
        self._bytes += len(message)
        if self._bytes > self._limit:
            self._messages.clear()
            self.close()
            return False
        self._messages.append(message)
        self._changed.set()
        return True

    def close(self) -> None:
        """No more messages; those queued are still delivered."""
        self.closed = True
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


class Connection:
    """An accepted WebSocket and its call."""

    def __init__(
        self, socket: WebSocket, seat: Seat, session: Session, settings: CallSettings, limits: LimitsConfig
    ) -> None:
        self._socket = socket
        self._peer: Peer | None = socket.scope.get("extensions", {}).get(PEER)
        self._limits = limits
        self._outbox = Outbox(limits.unread_bytes)
        self._event_prefix = fresh_id("event")
        self._events = 0
        self._reason = ""
        """Why it ended: the first reason counts."""
        self._grace: asyncio.Timeout | None = None
        """Runs out some time after the line has ended."""
        self._translator = Translator(session, fresh_id("conv"))
        formats = session.audio.input.format, session.audio.output.format
        self._line = WebSocketLine(*formats, on_audio=self._audio)
        self._emit(wire.SessionCreated(session=session))
        self._call = seat.open(self._line, settings, self._on_event)
        self._control = Control(self._call, self._line, self._translator, self._emit, limits.items)

    async def run(self) -> None:
        """Until either side hangs up. The socket is closed afterwards."""
        length = asyncio.get_running_loop().call_later(self._limits.call_ms / 1000, self._end, "max_length")
        try:
            async with asyncio.TaskGroup() as tasks:
                writer = tasks.create_task(self._write())
                reader = tasks.create_task(self._read())
                await self._converse()
                reader.cancel()
                self._say_goodbye()
                await self._flush(writer)
        finally:
            length.cancel()
            # They know this connection: in a circle, all of the call would stay until the collector's next full round.
            del self._call, self._control, self._line

    async def _converse(self) -> None:
        try:
            async with asyncio.timeout(None) as self._grace:
                await self._call.run()
        except TimeoutError:
            logger.warning("%s: did not end within %g s of its caller", self._call.id, LINGER)
        except Exception:
            logger.exception("%s: failed", self._call.id)
            self._reason = "error"
        finally:
            self._grace = None

    def _end(self, reason: str) -> None:
        """End the call from here: the line ends, and the call with it, by force if it must be."""
        self._reason = self._reason or reason
        self._line.input.end()
        if self._grace and self._grace.when() is None:
            self._grace.reschedule(asyncio.get_running_loop().time() + LINGER)

    def _say_goodbye(self) -> None:
        goodbye = _GOODBYES.get(self._reason, Goodbye(1000))
        if goodbye.code:
            self._emit(wire.ErrorEvent.of(WireError(goodbye.code, goodbye.message, kind="server_error")))
        self._outbox.close()

    # --- in

    async def _read(self) -> None:
        idle = self._limits.idle_ms / 1000
        reason = "caller"
        try:
            while True:
                async with asyncio.timeout(idle):
                    message = await self._socket.receive()
                if message["type"] == "websocket.disconnect":
                    break
                arrived = self._peer.received_at if self._peer else time.monotonic()
                await self._control.handle(message.get("text") or message.get("bytes") or b"", arrived)
        except TimeoutError:
            reason = "idle"
        self._end(reason)

    # --- out

    def _on_event(self, event: CallEvent) -> None:
        if isinstance(event, CallEnded):
            self._reason = self._reason or event.reason
        for out in self._translator(event):
            self._emit(out)

    def _audio(self, data: bytes, ms: float) -> None:
        for out in self._translator.audio(data, ms):
            self._emit(out)

    def _emit(self, event: wire.ServerEvent) -> None:
        self._events += 1
        event.event_id = f"{self._event_prefix}_{self._events}"
        if not self._outbox.put(wire.encode(event)):
            logger.warning("%s: hung up, its client does not take what it is sent", self._translator.session.id)
            self._abort()
            self._end("caller")

    async def _write(self) -> None:
        try:
            while (message := await self._outbox.get()) is not None:
                await self._socket.send_text(message.decode())
            await self._socket.close(_GOODBYES.get(self._reason, Goodbye(1000)).close)
        except (WebSocketDisconnect, RuntimeError):  # gone; Starlette raises the second after a close
            self._outbox.close()

    async def _flush(self, writer: "asyncio.Task[None]") -> None:
        done, _ = await asyncio.wait({writer}, timeout=LINGER)
        if not done:
            writer.cancel()
            self._abort()

    def _abort(self) -> None:
        if self._peer is not None:
            self._peer.abort()
