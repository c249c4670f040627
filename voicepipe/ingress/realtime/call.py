"""One call as the Realtime convention shows it: what it tells goes to all its clients, what they ask is carried out.

The client that placed the call is one of them; programs beside it (`?call_id=`) are others. How each is connected is in
`websocket.py` and `webrtc/channel.py`.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from voicepipe.agent import CallSettings, Origin
from voicepipe.bucket import Bucket, Rate
from voicepipe.call_api import Seat
from voicepipe.config import LimitsConfig
from voicepipe.errors import CallFull, KeysFailed, TransferFailed
from voicepipe.ingress.outbox import Outbox
from voicepipe.ingress.realtime import server_events as wire
from voicepipe.ingress.realtime.control import Control, InputLine
from voicepipe.ingress.realtime.errors import NO_KEYS, WireError
from voicepipe.ingress.realtime.items import fresh_id
from voicepipe.ingress.realtime.rights import Rights
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.realtime.share import Share
from voicepipe.ingress.realtime.translate import Translator
from voicepipe.ingress.scope import LINGER
from voicepipe.line import HostedLine
from voicepipe.turn.events import CallEnded, CallEvent
from voicepipe.turn.keypad import MOST as MOST_KEYS

logger = logging.getLogger(__name__)

EVERYTHING = Rights()
KEYS = Rate(MOST_KEYS, 20)
"""Of the telephone, at once and a second. A telephone system that dials for its caller presses 10 to 12 a second (tones
of 40 ms, pauses as long); what a network has held up comes at once."""
MOST_CLIENTS = 16
"""Of one call. They take no slot, and each may keep `limits.unread_bytes` waiting."""


class Goodbye(NamedTuple):
    """How a call ends for its clients. Without `code` there was no error."""

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


class RealtimeCall:
    """`run` it once, or `close` it if that never happens. Before and after, clients can listen but ask nothing.

    `input`: `line`, where its sound travels in events. `rights`: of who has placed it. Who holds an `ek_` key is not
    told what the agent's own tools do.
    """

    def __init__(
        self, line: HostedLine, seat: Seat, session: Session, settings: CallSettings, limits: LimitsConfig,
        rights: Rights = EVERYTHING, input: InputLine | None = None,
    ) -> None:  # fmt: skip
        self.limits = limits
        self.share = Share(limits.client_percent)
        """Of the loop's time, for what its clients ask."""
        self.reason = ""
        """Why it ended: the first reason counts."""
        self.running = asyncio.Event()
        """What clients ask can be carried out, or never will be."""
        self.ended = asyncio.Event()
        """Somebody has hung up, though what is left to be said may still be."""
        self._closed = False
        self._keys = Bucket(KEYS)
        self._early_keys = ""
        """Pressed before the call runs."""
        self._too_many_keys = False
        self._line = line
        self._clients: list[Outbox] = []
        self._event_prefix = fresh_id("event")
        self._events = 0
        self._grace: asyncio.Timeout | None = None
        """Runs out some time after the line has ended."""
        self._translator = Translator(
            session, fresh_id("conv"), audio_in_events=input is not None, tells_tools=rights.own_tools
        )
        line.on_audio = self._audio
        self._call = seat.open(line, settings, self._on_event)
        self.id = self._call.id
        self.kind, self.agent, self.origin = line.kind, settings.agent.name, settings.origin
        self.answering = settings.agent
        self._control = Control(self._call, line, input, self._translator, self._emit, limits)

    @property
    def goodbye(self) -> Goodbye:
        """How it ends, or ended."""
        return GOODBYES.get(self.reason, Goodbye(1000))

    def join(self, on_full: Callable[[], None]) -> Outbox:
        """A client that gets every event from now on, the session first. `on_full`: it does not take them.

        Raises CallFull.
        """
        if len(self._clients) >= MOST_CLIENTS:
            raise CallFull(f"{MOST_CLIENTS} clients are connected to this call; close one first.")
        outbox = Outbox(self.limits.unread_bytes, on_full)
        outbox.put(self._numbered(wire.SessionCreated(session=self._translator.session)))
        if self._closed:
            outbox.close()
        else:
            self._clients.append(outbox)
        return outbox

    def leave(self, outbox: Outbox) -> None:
        """This client gets nothing more."""
        outbox.close()
        if outbox in self._clients:
            self._clients.remove(outbox)

    async def handle(self, raw: str | bytes, arrived: float, asker: Outbox, rights: Rights = EVERYTHING) -> None:
        """One message of `asker`, which reached the socket at the monotonic second `arrived`. None once it is over."""
        if self._closed:
            return
        await self._control.handle(raw, arrived, lambda event: asker.put(self._numbered(event)), rights)

    def press(self, key: str) -> None:
        """The caller pressed a key of their telephone. Keys that come in masses are dropped. A telephone system may
        dial for its caller before the call runs, since sound can overtake an ACK: such keys wait for it."""
        if self._closed:
            return
        if not self._keys.admits(asyncio.get_running_loop().time()):
            if not self._too_many_keys:
                logger.warning("%s: more than %d keys a second are pressed: some are dropped", self.id, KEYS.per_s)
            self._too_many_keys = True
        elif self.running.is_set() and not self._early_keys:
            self._call.press(key)
        elif len(self._early_keys) < MOST_KEYS:
            self._early_keys += key

    def _press_early(self) -> None:
        keys, self._early_keys = self._early_keys, ""
        for key in keys:
            if not self._closed:
                self._call.press(key)

    def transfer(self, target: str) -> None:
        """Begin to send the caller to `target`. Raises TransferFailed: it cannot be begun."""
        if self._closed or not self.running.is_set():
            raise TransferFailed("the call is not in progress")
        self._call.transfer(target)

    def send_keys(self, digits: str) -> None:
        """As `HostedLine.send_keys`. Raises WireError, also where the call is over."""
        if self._closed or not self.running.is_set():
            raise WireError(NO_KEYS, "The call is not in progress: no keys were sent.")
        try:
            self._line.send_keys(digits)
        except KeysFailed as error:
            raise WireError(NO_KEYS, str(error)) from None

    def tell(self, client: Outbox, error: WireError) -> None:
        """Something went wrong for this client alone."""
        client.put(self._numbered(wire.ErrorEvent.of(error)))

    async def run(self) -> None:
        """Until either side hangs up; then every client is told, and gets nothing more."""
        loop = asyncio.get_running_loop()
        length, began = loop.call_later(self.limits.call_ms / 1000, self.end, "max_length"), loop.time()
        logger.info("%s: %s call%s, answered by %s", self.id, self.kind, _parties(self.origin), self.agent)
        self.running.set()
        loop.call_soon(self._press_early)  # Then the call has begun.
        try:
            async with asyncio.timeout(None) as self._grace:
                await self._call.run()
        except TimeoutError:
            logger.warning("%s: did not end within %g s of its caller", self.id, LINGER)
        except asyncio.CancelledError:
            self.reason = self.reason or "shutdown"
            raise
        except Exception:
            logger.exception("%s: failed", self.id)
            self.reason = "error"
        finally:
            length.cancel()
            self._grace = None
            self.close()
            logger.info("%s: ended after %.1f s (%s)", self.id, loop.time() - began, self.reason)

    def close(self) -> None:
        """It is over: every client is told why and gets nothing more. Safe to call twice."""
        if self._closed:
            return
        self._say_goodbye()
        self._closed = True
        self.ended.set()
        self.running.set()
        self._call.close()
        # They know this call: in a circle, all of it would stay until the collector's next full round.
        del self._call, self._control
        self._line.on_audio = _unheard

    def end(self, reason: str) -> None:
        """End the call from here: the line ends, and the call with it, by force if it must be."""
        self.reason = self.reason or reason
        self.ended.set()
        self._line.end()
        if self._grace and self._grace.when() is None:
            self._grace.reschedule(asyncio.get_running_loop().time() + LINGER)

    def _say_goodbye(self) -> None:
        if code := self.goodbye.code:
            self._emit(wire.ErrorEvent.of(WireError(code, self.goodbye.message, kind="server_error")))
        for outbox in self._clients:
            outbox.close()
        self._clients.clear()

    def _on_event(self, event: CallEvent) -> None:
        if isinstance(event, CallEnded):
            self.reason = self.reason or event.reason
        for out in self._translator(event):
            self._emit(out)

    def _audio(self, data: bytes, ms: float) -> None:
        for out in self._translator.audio(data, ms):
            self._emit(out)

    def _emit(self, event: wire.ServerEvent) -> None:
        if not self._clients:
            return  # As of most phone calls: nothing is encoded for nobody.
        message = self._numbered(event)
        for outbox in tuple(self._clients):
            outbox.put(message)

    def _numbered(self, event: wire.ServerEvent) -> bytes:
        self._events += 1
        event.event_id = f"{self._event_prefix}_{self._events}"
        return wire.encode(event)


def _parties(origin: Origin) -> str:
    """Both as the network said them: `%r` keeps what a stranger writes on its line of the log."""
    return f" from {origin.caller!r} to {origin.called!r}" if origin.caller or origin.called else ""


def _unheard(data: bytes, ms: float) -> None:
    """What is still sent once the call is over."""
