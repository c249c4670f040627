"""Calls that ring while the hook of their agent is asked, and the slots that they hold until their streams come."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from voicepipe.agent import Agent
from voicepipe.call_api import CallSlot, HookAnswer, PopApi, Tenant
from voicepipe.call_settings import Origin
from voicepipe.config.phone_config import StreamedKind
from voicepipe.ingress.access import Gone

HELD_S = 15.0
"""Seconds for which a slot is held, and an answer remembered, once the hook was asked. A stream comes within two."""


@dataclass(slots=True)
class _HookedCall:
    """A call whose hook is asked, or was. `resources` has its slot."""

    asked: asyncio.Task[HookAnswer]
    slot: CallSlot
    resources: ExitStack = field(default_factory=ExitStack)

    @property
    def has_answer(self) -> bool:
        """Whether the hook was asked, and has let the call in."""
        return self.asked.done() and not self.asked.cancelled() and self.asked.exception() is None


class HookedCalls:
    """The calls of one provider whose agents have a hook, from its webhook until their streams come. A call that is
    known (`in`) has its slot and was asked about: when its webhook comes again, it is not to be checked again."""

    def __init__(self, pop: PopApi, kind: StreamedKind) -> None:
        self._pop = pop
        self._kind = kind
        self._calls: dict[str, _HookedCall] = {}
        """By the provider's id."""

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._calls

    def ask(
        self, call_id: str, tenant: Tenant, agent: Agent, origin: Origin, limit_ms: int
    ) -> Coroutine[Any, Any, HookAnswer]:
        """Take a slot for a call that is not known, and ask the hook, within `limit_ms`. The slot is held until the
        stream takes it. Raises Refused: there is no slot. Returns as `answer` does."""
        with ExitStack() as resources:
            slot = resources.enter_context(self._pop.admit(tenant, agent))
            asked = asyncio.create_task(self._asked(slot, agent, origin, limit_ms))
            self._calls[call_id] = _HookedCall(asked, slot, resources.pop_all())
            asked.add_done_callback(lambda _: self._answered(call_id))
        return self.answer(call_id)

    async def _asked(self, slot: CallSlot, agent: Agent, origin: Origin, limit_ms: int) -> HookAnswer:
        return await self._pop.ask_hook(slot, agent, origin, self._kind, limit_ms)

    def answer(self, call_id: str) -> Coroutine[Any, Any, HookAnswer]:
        """The coroutine returns what the hook has said of a known call, or will say. It raises Declined; Gone: the call
        was given up meanwhile."""
        return _answer(self._calls[call_id].asked)

    def _answered(self, call_id: str) -> None:
        """The hook was asked: the slot is held for the stream, if the call is to be answered."""
        call = self._calls.get(call_id)
        if call is None:
            return
        if not call.has_answer:
            call.resources.close()
        asyncio.get_running_loop().call_later(HELD_S, self._expire, call_id, call)

    def _expire(self, call_id: str, call: _HookedCall) -> None:
        if self._calls.get(call_id) is call:
            self.give_up(call_id)

    def take(self, call_id: str) -> AbstractContextManager[CallSlot] | None:
        """The slot of the call, whose stream has come, until the context ends; None: it holds none. A call is given up
        whose stream has not waited for the hook."""
        call = self._calls.get(call_id)
        if call is None or not call.has_answer:
            self.give_up(call_id)
            return None
        return _slot(self._calls.pop(call_id))

    def give_up(self, call_id: str) -> None:
        """The call is over, or its stream does not come: its slot is given back."""
        if call := self._calls.pop(call_id, None):
            call.asked.cancel()
            call.resources.close()

    async def close(self) -> None:
        """Give all up: nothing is answered any more."""
        asked = {call.asked for call in self._calls.values()}
        for call_id in list(self._calls):
            self.give_up(call_id)
        if asked:
            await asyncio.wait(asked)


async def _answer(asked: asyncio.Task[HookAnswer]) -> HookAnswer:
    await asyncio.wait({asked})
    if asked.cancelled():
        raise Gone("The caller has hung up.")
    return asked.result()


@contextmanager
def _slot(call: _HookedCall) -> Iterator[CallSlot]:
    with call.resources:
        yield call.slot
