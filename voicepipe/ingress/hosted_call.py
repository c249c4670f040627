"""A call as its ingress runs it: begun, ended, found by its id, and followed by any number of listeners.

It knows no client's convention. A phone call has only this until a program joins it.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from voicepipe.agent import Agent
from voicepipe.base.caller_number import last_three
from voicepipe.base.errors import KeysFailed, TransferFailed
from voicepipe.base.token_bucket import Bucket, Rate
from voicepipe.call_api import CallControl, CallSlot
from voicepipe.call_settings import CallSettings, Origin
from voicepipe.config import LimitsConfig
from voicepipe.conversation.events import (
    CallEnded,
    CallEvent,
    ItemDeleted,
    ReplyDone,
    ReplyItemAdded,
    ReplyItemDone,
    ReplyStarted,
)
from voicepipe.ingress.asgi_scope import LINGER
from voicepipe.ingress.far_end import OnAudio
from voicepipe.line import Line
from voicepipe.turn.keypad import MOST as MOST_KEYS

logger = logging.getLogger(__name__)

KEYS = Rate(MOST_KEYS, 20)
"""Telephone keys that are allowed at once and a second. A telephone system that dials for its caller presses 10 to 12 a
second (tones of 40 ms, pauses as long); what a network has held up comes at once."""


class HostedLine(Line, Protocol):
    """A `Line` with what programs that follow its call need besides."""

    sound_comes: str
    """How the caller's sound reaches us, as an error says it to a program that sends some: "... on the audio track of
    this call"."""

    on_audio: OnAudio | None
    """Called with the sound that is sent."""

    async def flush(self) -> None:
        """Complete the last block with silence (19 ms at most), and wait until the call has heard all that came."""

    def end(self) -> None:
        """The caller is gone: what they said is still heard, except what a network has held up until now."""


class CallListener(Protocol):
    """Follows the events and the sound of a call. Its methods raise nothing, or the error would reach the code that
    caused the event. Implemented by `RealtimeClients`.
    """

    def on_event(self, event: CallEvent) -> None:
        """Called for each event, in order."""

    def on_audio(self, data: bytes, ms: float) -> None:
        """Called as an `OnAudio`."""

    def on_over(self) -> None:
        """The call is over, and nothing follows: `HostedCall.reason` says why."""


class HostedCall:
    """A call with its line, followed by any number of listeners. `run` it once, or `close` it if that never happens.
    Before and after `run`, listeners can join but ask nothing of it."""

    def __init__(self, line: HostedLine, slot: CallSlot, settings: CallSettings, limits: LimitsConfig) -> None:
        self.limits = limits
        self.reason = ""
        """Why it ended: the first reason counts."""
        self.running = asyncio.Event()
        """Set when the call runs and can be controlled, or never will be."""
        self.hung_up = asyncio.Event()
        """One side has hung up, though the rest of what the agent says may still be sent."""
        self.is_over = False
        self.until = int(time.time() + limits.call_ms / 1000)
        """The Unix second at which the call reaches the longest time that it may last."""
        self.line = line
        self._keys = Bucket(KEYS)
        self._early_keys = ""
        """Pressed before the call runs."""
        self._too_many_keys = False
        self.listeners: list[CallListener] = []
        self._underway = _ReplyInProgress()
        self._grace: asyncio.Timeout | None = None
        """A timer that runs out some time after the line has ended."""
        line.on_audio = self._on_audio
        self.control: CallControl = slot.open(line, settings, self._on_event)
        """What can be asked of the call. `close` deletes it: once the call `is_over`, this attribute is not there."""
        self.id = self.control.id
        self.kind, self.origin = line.kind, settings.origin
        self._last_settings = settings
        self._slot = slot

    # --- who follows it

    def add_listener(self, listener: CallListener) -> None:
        """The listener gets all events from now on; `reply` has what it missed of the reply in progress."""
        if not self.is_over:
            self.listeners.append(listener)

    @property
    def settings(self) -> CallSettings:
        """As they are now, or were when the call ended."""
        return self._last_settings if self.is_over else self.control.settings

    @property
    def agent(self) -> Agent:
        """The agent that has the call, or had it when it ended."""
        return self.settings.agent

    @property
    def reply(self) -> Sequence[CallEvent]:
        """The events so far of the reply in progress, without its text; empty where there is none."""
        return self._underway.events

    def sent_ms(self, item_id: str) -> float:
        """Milliseconds of an item's audio that the caller has been sent."""
        return self._underway.sent_ms.get(item_id, 0.0)

    def _on_event(self, event: CallEvent) -> None:
        if isinstance(event, CallEnded):
            self.reason = self.reason or event.reason
        self._underway.note(event)
        for listener in self.listeners:
            listener.on_event(event)

    def _on_audio(self, data: bytes, ms: float) -> None:
        self._underway.sent(ms)
        for listener in self.listeners:
            listener.on_audio(data, ms)

    # --- what is asked of it

    def press(self, key: str) -> None:
        """The caller pressed a key of their telephone. Keys that come in masses are dropped. A telephone system may
        dial for its caller before the call runs, since sound can overtake an ACK: such keys wait for it."""
        if self.is_over:
            return
        if not self._keys.admits(asyncio.get_running_loop().time()):
            if not self._too_many_keys:
                logger.warning("%s: more than %d keys a second are pressed: some are dropped", self.id, KEYS.per_s)
            self._too_many_keys = True
        elif self.running.is_set() and not self._early_keys:
            self.control.press(key)
        elif len(self._early_keys) < MOST_KEYS:
            self._early_keys += key

    def _press_early(self) -> None:
        keys, self._early_keys = self._early_keys, ""
        for key in keys:
            if not self.is_over:
                self.control.press(key)

    def transfer(self, target: str) -> None:
        """Begin to send the caller to `target`. Raises TransferFailed: it cannot be begun."""
        if self.is_over or not self.running.is_set():
            raise TransferFailed("the call is not in progress")
        self.control.transfer(target)

    def send_keys(self, digits: str) -> None:
        """Begin to send keys to the far end, as `Line.send_keys`. Raises KeysFailed: none will be sent, also since the
        call is over."""
        if self.is_over or not self.running.is_set():
            raise KeysFailed("The call is not in progress: no keys were sent.")
        self.line.send_keys(digits).add_done_callback(partial(_log_failed_keys, self.id))

    def end(self, reason: str) -> None:
        """End the call from here: the line ends, and the call with it, by force if it must be."""
        self.reason = self.reason or reason
        self.hung_up.set()
        self.line.end()
        if self._grace and self._grace.when() is None:
            self._grace.reschedule(asyncio.get_running_loop().time() + LINGER)

    # --- its life

    async def run(self) -> None:
        """Returns when either side has hung up, and every listener was notified."""
        loop = asyncio.get_running_loop()
        length, began = loop.call_later(self.limits.call_ms / 1000, self.end, "max_length"), loop.time()
        parties, agent = _parties(self.origin), self.agent.name
        logger.info("%s: %s call%s, answered by %s", self.id, self.kind, parties, agent)
        self.running.set()
        loop.call_soon(self._press_early)  # Then the call has begun.
        try:
            async with asyncio.timeout(None) as self._grace:
                await self.control.run()
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
        """The call is over: notify every listener. Safe to call twice."""
        if self.is_over:
            return
        self._last_settings = self.control.settings
        self.is_over = True
        self._slot.ended(self.reason or "not_begun")
        listeners, self.listeners = self.listeners, []  # They know this call: kept, they would be a circle.
        self.hung_up.set()
        self.running.set()
        for listener in listeners:
            try:
                listener.on_over()
            except Exception:  # The others are notified, and the call is released.
                logger.exception("%s: who listens to it cannot be told that it is over", self.id)
        self.control.close()
        del self.control  # It knows this call: in a circle, all would stay until the collector's next full round.
        self.line.on_audio = None


class _ReplyInProgress:
    """The state of the reply in progress, for a listener that joins late, and how much sound of each item was sent."""

    def __init__(self) -> None:
        self.events: list[CallEvent] = []
        self.sent_ms: dict[str, float] = {}
        self._item = ""
        """The item that the reply is making; empty: none."""

    def note(self, event: CallEvent) -> None:
        match event:
            case ReplyStarted():
                self.events, self._item = [event], ""
            case ReplyItemAdded(item=item):
                self.events.append(event)
                self._item = item.id
            case ReplyItemDone():
                self.events.append(event)
                self._item = ""
            case ReplyDone():
                self.events, self._item = [], ""
            case ItemDeleted(item_id=item_id):
                self.sent_ms.pop(item_id, None)

    def sent(self, ms: float) -> None:
        """Count so many milliseconds of sound for the item in progress."""
        if self._item:
            self.sent_ms[self._item] = self.sent_ms.get(self._item, 0.0) + ms


def _log_failed_keys(call_id: str, sending: "asyncio.Future[None]") -> None:
    if not sending.cancelled() and (error := sending.exception()):
        logger.error("%s: keys that a program asked for were not sent: %s", call_id, error)


def _parties(origin: Origin) -> str:
    """Caller and called number for the log, as the network gave them, but of the caller's number only its end. `%r`
    keeps what a stranger sends on its line of the log."""
    return f" from {last_three(origin.caller)!r} to {origin.called!r}" if origin.caller or origin.called else ""
