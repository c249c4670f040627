"""Phone calls that a program accepts or rejects while they ring: OpenAI's `realtime.call.incoming`.

https://developers.openai.com/api/docs/guides/realtime-sip. It is one more way to ask an agent's hook. The session with
which a call is accepted is laid over the agent, as that of a WebSocket's client is.
"""

import asyncio
import logging
import secrets
import time
from typing import Any
from urllib.parse import quote

import msgspec

from voicepipe.agent import Agent
from voicepipe.base.errors import Declined, UnknownCall
from voicepipe.call_api import NO_ANSWER, CallSlot, HookAnswer, IncomingCall, Tenant
from voicepipe.call_settings import CallSettings, Origin
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.realtime.rights import effective_session
from voicepipe.ingress.wire_errors import WireError
from voicepipe.pop.hooks import Hook, HookCaller, HookFailed, noted

log = logging.getLogger(__name__)

KEY = "incoming_call"
EVENT = "realtime.call.incoming"
NUMBER = "+*#-._~"
"""Characters of a caller's number that stay as they are in an address, besides letters and digits."""
LONGEST, MOST_HEADERS = 1024, 64
"""Characters of a header's value, and headers, that a program gets: callers write them."""


class IncomingCalls:
    """The calls that ring and wait to be accepted. Implements `call_api.IncomingCallsApi`. `here`: the host in the
    addresses that programs read."""

    def __init__(self, hooks: HookCaller, here: str) -> None:
        self._hooks = hooks
        self._here = here
        self._ringing: dict[str, _Undecided] = {}

    async def ask(self, slot: CallSlot, agent: Agent, origin: Origin, limit_ms: int | None = None) -> HookAnswer:
        """As `PopApi.ask_hook`, of an agent that has an `incoming_call`. Raises Declined."""
        hooks = agent.hooks
        hook = Hook(KEY, hooks.incoming_call, hooks.incoming_call_ms, secret=hooks.secret).within(limit_ms)
        said = NO_ANSWER
        ringing = _Undecided(IncomingCall(slot.call_id, slot.owner, agent, origin))
        self._ringing[slot.call_id] = ringing
        event_id, event = _event(slot.call_id, origin, self._here)
        posting = self._hooks.begin_post(hook, event, event_id, slot.call_id, slot.owner)
        posting.add_done_callback(ringing.posted)
        try:
            with noted(slot, agent, KEY):
                said = await _decided_in_time(ringing, hook)
        except asyncio.CancelledError:  # The caller has hung up.
            posting.cancel()
            raise
        finally:
            del self._ringing[slot.call_id]
        return said

    # --- IncomingCallsApi

    def find(self, call_id: str, tenant: Tenant) -> IncomingCall:
        found = self._ringing.get(call_id)
        if found is None or found.decision.done() or found.call.owner != tenant.name:
            raise UnknownCall(f"No call with the id {call_id[:200]!r} waits to be accepted or rejected.")
        return found.call

    def accept(self, call: IncomingCall, said: HookAnswer) -> None:
        self._decided(call).set_result(said)

    def reject(self, call: IncomingCall, sip_code: int) -> None:
        self._decided(call).set_exception(Declined("Its program has rejected the call.", sip_code))

    def _decided(self, call: IncomingCall) -> asyncio.Future[HookAnswer]:
        return self._ringing[self.find(call.id, Tenant(call.owner)).id].decision


class _Undecided:
    """A call that rings, and the decision that it waits for."""

    def __init__(self, call: IncomingCall) -> None:
        self.call = call
        self.decision: asyncio.Future[HookAnswer] = asyncio.get_running_loop().create_future()

    def posted(self, task: asyncio.Task[None]) -> None:
        """The webhook was sent: one that nobody has taken decides at once."""
        if not task.cancelled() and (error := task.exception()) and not self.decision.done():
            self.decision.set_exception(error)


async def _decided_in_time(ringing: _Undecided, hook: Hook) -> HookAnswer:
    """Raises HookFailed, Declined."""
    try:
        async with asyncio.timeout(hook.limit_ms / 1000):
            return await ringing.decision
    except TimeoutError:
        faster = f"raise hooks.{KEY}_ms" if hook.may_be_given_more else "accept it sooner"
        raise HookFailed(f"the call was not accepted within {hook.time}: {faster}", "timeout") from None


def _event(call_id: str, origin: Origin, here: str) -> tuple[str, bytes]:
    """The event's id, and the event as JSON. What callers write is bounded."""
    event_id = f"evt_{secrets.token_hex(16)}"
    parties = {"From": _address(origin.caller, here), "To": _address(origin.called, here)}
    headers = [*parties.items(), *origin.headers.items()][:MOST_HEADERS]
    event: dict[str, Any] = {
        "object": "event",
        "id": event_id,
        "type": EVENT,
        "created_at": int(time.time()),
        "data": {
            "call_id": call_id,
            "sip_headers": [{"name": _text(name), "value": _text(value)} for name, value in headers],
        },
    }
    return event_id, msgspec.json.encode(event)


def _text(written: str) -> str:
    """What a caller wrote, bounded. It may be no Unicode, which JSON cannot hold."""
    return written[:LONGEST].encode(errors="replace").decode()


def _address(number: str, here: str) -> str:
    return f"sip:{quote(_text(number), NUMBER)}@{here}"


def with_session(settings: CallSettings, session: bytes) -> CallSettings:
    """These settings with the session of a call that was accepted laid over them."""
    try:
        _, changed = effective_session(settings, Caller(Tenant(""), session=session))
    except WireError as error:  # The agent's file has changed since it was checked.
        log.warning("the session with which a call of %s was accepted is left out: %s", settings.agent.name, error)
        return settings
    return changed
