"""A provider's media stream as a call: checked before it is accepted, then like any other call."""

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
from starlette.websockets import WebSocket

from voicepipe.agent import Agent
from voicepipe.base.errors import Refused
from voicepipe.base.round_robin import owned_by
from voicepipe.base.tasks import TaskGroup
from voicepipe.call_api import CallSlot, HookAnswer, PopApi
from voicepipe.call_settings import CallSettings, Origin
from voicepipe.ingress.access import Attempt
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.asgi_scope import peer_of, take_visit
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.phone import placed
from voicepipe.ingress.telephony.dialects import (
    Dialect,
    SoundFormat,
    StreamKey,
    StreamMark,
    StreamMedia,
    StreamStart,
    StreamStop,
)
from voicepipe.ingress.telephony.hooked_calls import HookedCalls
from voicepipe.ingress.telephony.provider_access import ProviderAccess
from voicepipe.ingress.telephony.signatures import Forbidden
from voicepipe.ingress.telephony.stream_line import ProviderCommands, StreamLine
from voicepipe.ingress.telephony.wire import StreamWire
from voicepipe.ingress.trace_context import in_trace
from voicepipe.ingress.visits import Visit

LEAST_RING_S, OVERTIME_S = 5, 2
"""Seconds that are given to ring, at least; and seconds by which we wait longer than the network, so that nobody
answers a call that was given up."""
SILENT_MS = 2000
"""For so long a caller may wait in silence for an agent's hook."""
REFUSED = 1008
"""WebSocket close code of a stream that is refused."""
T = TypeVar("T")
WAIT_S = 0.06
"""Seconds for which a missing packet is waited for, by the clock of those that come; then sound goes on without it."""
EARLY = 32
"""Most packets that wait for a missing one: in that time an honest provider sends three."""


class StreamedCall(NamedTuple):
    """A call as its stream brings it."""

    origin: Origin
    agent: str
    """The agent that was asked for; empty: none."""
    sound: SoundFormat
    """The format of the sound that we send."""
    returned: bool = False
    """The call was transferred, and nobody answered: it is a new call here, which the caller takes for the same one."""
    network: str = ""
    """As `Grant.network`; empty: no directory has sent the call here."""
    owner: str = ""
    """As in `phone.placed`."""
    said: HookAnswer | None = None
    """The answer of the agent's hook, which was asked while the call rang; None: it was not."""


class ExpectedStream(NamedTuple):
    """A stream that a token is for."""

    call_id: str = ""
    """Empty: of any call."""
    said: HookAnswer | None = None
    """As in `StreamedCall`."""


class StreamProvider(Protocol):
    """A provider of media streams: the part that differs between Twilio and Telnyx."""

    dialect: Dialect

    def check(self, socket: WebSocket) -> ExpectedStream:
        """The stream that this may be. Raises Forbidden."""

    def admit(self, start: StreamStart, expected: ExpectedStream) -> StreamedCall:
        """The call of a stream that begins with this message; `expected` is the result of `check`. Raises Forbidden: we
        have not asked for this stream."""

    async def transfer(self, start: StreamStart, target: str, ring_s: int) -> None:
        """As `Line.transfer`; the new call may ring for so many seconds."""

    async def send_keys(self, start: StreamStart, keys: str) -> None:
        """Have the provider begin to send keys, with the `PAUSES` among them. Raises KeysFailed."""

    async def ended(self, call_id: str, reason: str) -> None:
        """Our part of the provider's call is over. The reason is one of `CallEnded`'s, or "refused": nothing more is
        said."""


class ReorderBuffer(Generic[T]):
    """Puts packets of sound in order by their numbers, which count from 1. What comes in order goes on at once, what
    comes too late is dropped."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next = 1
        self._early: dict[int, tuple[float, T]] = {}
        """Packets that came before their turn, and when they came."""

    def __call__(self, number: int, packet: T) -> list[T]:
        """The packets that may go on now that this one is here. One without a number (0) goes on at once."""
        if not number:
            return [packet]
        if number < self._next:
            return []
        self._early[number] = self._clock(), packet
        ready = self._in_order()
        while self._early and (len(self._early) > EARLY or self._waited_s() >= WAIT_S):
            self._next = min(self._early)
            ready += self._in_order()
        return ready

    def _waited_s(self) -> float:
        return self._clock() - min(came for came, _ in self._early.values())

    def _in_order(self) -> list[T]:
        ready = []
        while self._next in self._early:
            ready.append(self._early.pop(self._next)[1])
            self._next += 1
        return ready


class StreamEndpoint:
    """The WebSocket endpoint for the media streams of one provider."""

    def __init__(
        self, pop: PopApi, calls: Calls, provider: StreamProvider, access: ProviderAccess, hooked: HookedCalls
    ) -> None:
        self._pop = pop
        self._calls = calls
        self._provider = provider
        self._access = access
        self._hooked = hooked

    async def websocket(self, socket: WebSocket) -> None:
        """GET: refused with 403 before it is accepted; returns when the call is over."""
        try:
            expected = self._provider.check(socket)
        except Forbidden as error:
            return await socket.send_denial_response(self._access.forbid(socket, "a stream", error))
        visit = take_visit(socket)
        await socket.accept()
        wire = StreamWire(socket, self._provider.dialect, self._pop.config.limits)
        call_id, reason, asked = expected.call_id, "refused", self._access.attempt()
        try:
            start = await wire.start()
            if start is None:
                asked.refused("bad_request", REFUSED)
                return await wire.refuse(REFUSED)
            arrival = self._provider.admit(start, expected)
            call_id = start.call_id
            reason = await self._converse(socket, wire, start, arrival, visit, asked)
        except Forbidden as error:
            self._access.forbid(socket, "a stream", error, REFUSED)
            await wire.refuse(REFUSED)
        except Refused as error:
            self._access.refused(error, asked, REFUSED)
            await wire.refuse(REFUSED)
        except Exception:
            if reason == "refused":
                asked.refused("error", REFUSED)
            raise
        finally:
            await self._provider.ended(call_id, reason)

    async def _converse(
        self,
        socket: WebSocket,
        wire: StreamWire,
        start: StreamStart,
        arrival: StreamedCall,
        visit: Visit | None,
        asked: Attempt,
    ) -> str:
        """Have the call answered; returns why it ended. Programs find it by the provider's own id. Raises Refused."""
        provider, limits = self._provider, self._pop.config.limits
        tenant, agent = placed(
            self._pop, provider.dialect.kind, arrival.origin.called, arrival.agent, owner=arrival.owner
        )
        asked.by(tenant, agent)
        with ExitStack() as resources:
            slot = resources.enter_context(self._hooked.take(start.call_id) or self._pop.admit(tenant, agent))
            if visit:
                visit.accepted()  # Not earlier: Twilio's signature of a stream is always the same.
            settings = in_trace(await self._settings(slot, agent, arrival), socket)
            ring_s = max(LEAST_RING_S, settings.agent.transfer_ms // 1000 - OVERTIME_S)
            line = StreamLine(
                provider.dialect,
                start.stream_id,
                (start.sound, arrival.sound),
                wire.say,
                ProviderCommands(
                    lambda target: provider.transfer(start, target, ring_s),
                    lambda keys: provider.send_keys(start, keys),
                ),
                peer=peer_of(socket),
                network=arrival.network,
            )
            call = HostedCall(line, slot, settings, limits)
            resources.enter_context(self._calls.known(Caller(tenant), call, start.call_id))
            resources.enter_context(owned_by(call.id))
            async with TaskGroup() as tasks:
                writer = tasks.create_task(wire.write())
                reader = tasks.create_task(self._feed(wire, line, call))
                await call.run()
                reader.cancel()
                await wire.flush(writer)
            return call.reason

    async def _settings(self, slot: CallSlot, agent: Agent, arrival: StreamedCall) -> CallSettings:
        """The settings with which the call begins. Raises Declined."""
        said, door = arrival.said, self._provider.dialect.kind
        if said is None:  # It was not asked before: the caller waits in silence.
            said = await self._pop.ask_hook(slot, agent, arrival.origin, door, SILENT_MS)
        settings = self._pop.settings(agent, arrival.origin, said)
        if arrival.returned:
            told = msgspec.structs.replace(settings.agent, greeting=settings.agent.transfer_failed)
            settings = msgspec.structs.replace(settings, agent=told)
        return settings

    async def _feed(self, wire: StreamWire, line: StreamLine, call: HostedCall) -> None:
        """Feed the call from the provider's messages until the stream stops; then end the call."""
        in_order = None if self._provider.dialect.ordered else ReorderBuffer[tuple[bytes, float]](time.monotonic)

        stops = False

        async def heed() -> None:
            nonlocal stops
            async with asyncio.timeout(call.limits.idle_ms / 1000):
                said = await wire.next()
            match said:
                case StreamMedia(payload, chunk), arrived:
                    packet = payload, arrived
                    for one in in_order(chunk, packet) if in_order else [packet]:
                        await line.hear(*one)
                case StreamKey(key), _:
                    call.press(key)
                case StreamMark(name), _:
                    line.mark(name)
                case None | (StreamStop(), _):  # A provider may end the stream of whom somebody else has taken.
                    stops = True
                    call.end("transferred" if line.transferring else "caller")

        try:
            while not stops:
                await wire.share.spend(heed(), wire.slowed)
        except TimeoutError:
            call.end("idle")
