"""The calls of one PoP that can be found by an id. Those that outlive the request for them (WebRTC, SIP) are run
here."""

import asyncio
import logging
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol

import msgspec

from voicepipe.base.errors import Draining, UnknownCall
from voicepipe.base.round_robin import owned_by
from voicepipe.base.takeover import TakeoverParts
from voicepipe.base.tasks import supervised
from voicepipe.call_api import Tenant
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.asgi_scope import LINGER
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.rtp.clock import MediaClock

logger = logging.getLogger(__name__)


class AdoptedCall(Protocol):
    """A call that goes on after the request for it was answered, so that `Calls` runs it. Implemented by `WebRtcCall`
    and `SipCall`."""

    hosted: HostedCall

    async def run(self, clock: MediaClock) -> None:
        """Returns when either side has hung up. A failure ends this call only: nothing is raised."""


@dataclass(frozen=True, slots=True)
class _OwnedCall:
    """A call in progress, with its owner."""

    who: Caller
    hosted: HostedCall
    since: int
    """Unix seconds."""


class CallElsewhere(msgspec.Struct, frozen=True):
    """A call that goes on in the process before this one."""

    tenant: str
    row: dict[str, str | int]
    """As the API lists it."""
    provider_id: str = ""
    """The id that its provider gave it; empty: it has none."""


class Calls:
    """The calls of one PoP, by id. `run` owns the tasks of adopted calls and their one clock: none is adopted before it
    runs. `parts`: what the next process gets to know of them."""

    def __init__(self, parts: TakeoverParts | None = None) -> None:
        self.boot = secrets.token_hex(8)
        """Identifies this run of the server."""
        self.elsewhere: list[CallElsewhere] = []
        """Calls that go on in the process before this one."""
        self._parts = parts or TakeoverParts()
        self._parts.join("calls", list[CallElsewhere], self._handed_over, self._take_over)
        self._clock = MediaClock()
        self._known: dict[str, _OwnedCall] = {}
        self._by_provider: dict[str, str] = {}
        """Our id of a call, by its provider's."""
        self._tasks: asyncio.TaskGroup | None = None
        self._adopted: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Runs until cancelled; then every call is notified that the server shuts down, and has a few seconds to
        end."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            clock = tasks.create_task(supervised("the media clock", self._clock.run))
            try:
                await asyncio.wait({clock})
            finally:
                self._tasks = None
                await self._end_all()

    async def _end_all(self) -> None:
        for known in self._known.values():
            known.hosted.end("shutdown")
        if self._adopted:
            await asyncio.wait(self._adopted, timeout=LINGER)

    def adopt(self, call: AdoptedCall, who: Caller, resources: ExitStack) -> str:
        """Run the call from now on; returns its id. `resources` holds the caller's slot in this PoP, and is
        ours from then on. Raises Draining."""
        if self._tasks is None:
            raise Draining("This PoP is being shut down and takes no new calls; try another one.")
        call_id = call.hosted.id
        with owned_by(call_id):
            task = self._tasks.create_task(self._run(call, who, resources.pop_all()))
        self._adopted.add(task)
        task.add_done_callback(self._adopted.discard)
        self._know(who, call.hosted)  # It may be asked for before its task begins.
        return call_id

    async def _run(self, call: AdoptedCall, who: Caller, resources: ExitStack) -> None:
        try:
            with resources, self.known(who, call.hosted):
                await call.run(self._clock)
        except Exception:  # One call's failure is never another's, and all of them hang on this group of tasks.
            logger.exception("%s: failed", call.hosted.id)

    @contextmanager
    def known(self, who: Caller, hosted: HostedCall, provider_id: str = "") -> Iterator[str]:
        """Makes the call known, within the context, by the id that it yields and by the id that its provider gave
        it."""
        if provider_id:
            self._by_provider[provider_id] = hosted.id
        self._know(who, hosted)
        try:
            yield hosted.id
        finally:
            del self._known[hosted.id]
            self._by_provider.pop(provider_id, None)  # A provider may send two streams of one call.
            self._parts.changed("calls")

    def _know(self, who: Caller, hosted: HostedCall) -> None:
        self._known.setdefault(hosted.id, _OwnedCall(who, hosted, int(time.time())))
        self._parts.changed("calls")

    def _handed_over(self) -> list[CallElsewhere]:
        by_id = {call_id: provider_id for provider_id, call_id in self._by_provider.items()}
        return self.elsewhere + [CallElsewhere(known.who.tenant.name, _row(known), by_id.get(call_id, ""))
                                 for call_id, known in self._known.items()]  # fmt: skip

    def _take_over(self, calls: list[CallElsewhere]) -> None:
        self.elsewhere = calls

    def is_elsewhere(self, call_id: str) -> bool:
        """Whether the process before this one has the call of this id, ours or its provider's."""
        return any(call_id in (call.row["id"], call.provider_id) for call in self.elsewhere)

    def find(self, call_id: str, who: Caller) -> HostedCall:
        """The call of this id, as far as `who` may have it: any of their tenant's, or with an `ek_` key a call that was
        begun with it; with a call's token that call. Raises UnknownCall."""
        known = self._known.get(self._by_provider.get(call_id, call_id))
        if known is None or not _theirs(known.who, who):
            raise UnknownCall(f"No call has the id {call_id!r}.")
        return known.hosted

    def rows(self, tenant: Tenant) -> list[dict[str, str | int]]:
        """This tenant's calls as the API lists them, in the order in which they came."""
        before = [call.row for call in self.elsewhere if call.tenant == tenant.name]
        return before + [_row(known) for known in self._known.values() if known.who.tenant.name == tenant.name]


def _theirs(caller: Caller, who: Caller) -> bool:
    """Whether `who` may find the call of `caller`."""
    if caller.tenant.name != who.tenant.name or who.secret not in ("", caller.secret):
        return False
    if who.grant and who.grant.begins:
        return caller.grant is not None and caller.grant.id == who.grant.id
    return True


def _row(known: _OwnedCall) -> dict[str, str | int]:
    call = known.hosted
    return {"id": call.id, "kind": call.kind, "agent": call.agent.name, "caller": call.origin.caller,
            "called": call.origin.called, "since": known.since}  # fmt: skip
