"""The clients of one call: all of them get its events, and each can control it.

The client that placed the call is one of them; programs beside it (`?call_id=`) are others. How each is connected is in
`websocket.py` and `webrtc/channel.py`.
"""

from collections.abc import Callable
from typing import NamedTuple

from voicepipe.base.errors import CallFull
from voicepipe.conversation.events import AgentChanged, CallEvent, LanguageChanged, ReplyDone
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.loop_share import CallLoopShare
from voicepipe.ingress.realtime import server_events as wire
from voicepipe.ingress.realtime.client_control import ClientControl, sound_line
from voicepipe.ingress.realtime.items import fresh_id
from voicepipe.ingress.realtime.rights import Rights
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.realtime.translate import Translator
from voicepipe.ingress.socket_sender import Outbox
from voicepipe.ingress.wire_errors import WireError

EVERYTHING = Rights()
MOST_CLIENTS = 16
"""Clients that may follow one call. They take no slot, and each may have `limits.unread_bytes` waiting."""


class Goodbye(NamedTuple):
    """How the end of a call is announced to its clients. Without `code` there was no error."""

    close: int
    """WebSocket close code."""
    code: str = ""
    message: str = ""


GOODBYES = {
    "caller": Goodbye(1000),
    "closed": Goodbye(1000),
    "agent": Goodbye(1000),
    "no_input": Goodbye(1000),
    "transferred": Goodbye(1000),
    "max_length": Goodbye(1001, "session_expired", "Your session hit the maximum duration."),
    "idle": Goodbye(1001, "session_idle", "Nothing was heard from the client for too long."),
    "data_channel": Goodbye(1008, "data_channel_unusable", "The data channel could not be used for too long."),
    "shutdown": Goodbye(1012, "server_shutdown", "The server is going down."),
    "error": Goodbye(1011, "server_error", "The server failed on this call."),
}


class RealtimeClients:
    """The clients of one call: all of them get its events, and each can control it. It is one listener of the call. A
    call that begins by this convention is made with its clients; `of` is for any other call.

    `rights`: those of the client that began it; a holder of an `ek_` key does not see what the agent's own tools do."""

    def __init__(self, call: HostedCall, session: Session, rights: Rights = EVERYTHING) -> None:
        self.call = call
        self.share = CallLoopShare(call.limits.client_percent)
        """Share of the loop's time for what the clients ask."""
        self._clients: dict[Outbox, Rights] = {}
        self._event_prefix = fresh_id("event")
        self._events = 0
        self._translator = Translator(
            session, fresh_id("conv"), audio_in_events=sound_line(call) is not None, tells_tools=rights.of_tenant
        )
        self._control = None if call.is_over else ClientControl(call, self._translator, self._emit)
        """None once the call is over."""
        call.add_listener(self)

    @classmethod
    def of(cls, call: HostedCall) -> "RealtimeClients":
        """The clients of a call; one that did not begin by this convention has its settings as their session."""
        for listener in call.listeners:
            if isinstance(listener, cls):
                return listener
        return cls(call, Session.of(call.settings, id=fresh_id("sess"), expires_at=call.until))

    @property
    def goodbye(self) -> Goodbye:
        """How the end of the call is announced."""
        return GOODBYES.get(self.call.reason, Goodbye(1000))

    def join(self, on_full: Callable[[], None], rights: Rights = EVERYTHING) -> Outbox:
        """Add a client that gets every event from now on, the session first, of which it sees what its rights allow.
        `on_full` is called when it does not read them. Raises CallFull."""
        if len(self._clients) >= MOST_CLIENTS:
            raise CallFull(f"{MOST_CLIENTS} clients are connected to this call; close one first.")
        if not self._clients:
            self._translator.catch_up(self.call.reply, self.call.sent_ms)
            if self._control:
                self._control.show_voice()  # It may have changed in a reply that nobody listened to.
        outbox = Outbox(self.call.limits.unread_bytes, on_full)
        shown = rights.shown(self._translator.shown, self.call.settings)
        outbox.put(self._numbered(wire.SessionCreated(session=shown)))
        if self._control:
            self._clients[outbox] = rights
        else:
            outbox.close()
        return outbox

    def leave(self, outbox: Outbox) -> None:
        """Remove a client: it gets nothing more."""
        outbox.close()
        self._clients.pop(outbox, None)

    async def handle(self, raw: str | bytes, arrived: float, asker: Outbox, rights: Rights = EVERYTHING) -> None:
        """Carry out one message of `asker`, which reached the socket at the monotonic second `arrived`; returns when
        the next one may be. Does nothing once the call is over."""
        if self._control:
            asked = self._control.handle(raw, arrived, lambda event: asker.put(self._numbered(event)), rights)
            await self.share.spend(asked, lambda why: self._slowed(asker, why))

    def send_error(self, client: Outbox, error: WireError) -> None:
        """Send an error to this client alone."""
        client.put(self._numbered(wire.ErrorEvent.of(error)))

    def _slowed(self, client: Outbox, why: str) -> None:
        """The client asks for more than the clients' share of the loop."""
        self.send_error(client, WireError("rate_limit_exceeded", why, kind="rate_limit_error"))

    # --- the call's listener

    def on_event(self, event: CallEvent) -> None:
        if isinstance(event, AgentChanged):
            if self._control:
                self._control.agent_changed(event.settings)
            return
        if isinstance(event, LanguageChanged):
            if self._control:
                self._control.show_voice()
            return
        if not self._clients:
            return  # Nothing is made for nobody: the next client catches up.
        for out in self._translator(event):
            self._emit(out)
        if isinstance(event, ReplyDone) and self._control:
            self._control.show_voice()

    def on_audio(self, data: bytes, ms: float) -> None:
        if not self._clients:
            return
        for out in self._translator.audio(data):
            self._emit(out)

    def on_over(self) -> None:
        """Notify every client of the end and of its reason; then they get nothing more."""
        if code := self.goodbye.code:
            self._emit(wire.ErrorEvent.of(WireError(code, self.goodbye.message, kind="server_error")))
        for outbox in self._clients:
            outbox.close()
        self._clients.clear()
        self._control = None  # It knows us, and the call.

    def _emit(self, event: wire.ServerEvent) -> None:
        if isinstance(event, wire.SessionUpdated):
            return self._emit_session(event.session)
        message = self._numbered(event)
        for outbox in tuple(self._clients):
            outbox.put(message)

    def _emit_session(self, session: Session) -> None:
        for outbox, rights in tuple(self._clients.items()):
            shown = rights.shown(session, self.call.settings)
            outbox.put(self._numbered(wire.SessionUpdated(session=shown)))

    def _numbered(self, event: wire.ServerEvent) -> bytes:
        self._events += 1
        event.event_id = f"{self._event_prefix}_{self._events}"
        return wire.encode(event)
