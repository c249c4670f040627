"""The WebRTC calls of one PoP: an offer in, an answer out, and a call that outlives the request."""

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass

from voicepipe.agent import CallSettings
from voicepipe.call_api import Seat, Tenant
from voicepipe.config import Config
from voicepipe.errors import Draining, UnknownCall
from voicepipe.ingress.realtime.call import LINGER, RealtimeCall
from voicepipe.ingress.realtime.items import fresh_id
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.webrtc.peer import WebRtcCall
from voicepipe.rtp import sdp
from voicepipe.rtp.clock import MediaClock
from voicepipe.rtp.transport import Network


@dataclass(frozen=True, slots=True)
class _Known:
    """A call, and whose it is."""

    tenant: Tenant
    call: WebRtcCall


class WebRtcCalls:
    """`run` owns the calls' tasks and their one clock: nothing is taken before it runs."""

    def __init__(self, config: Config, network: Network) -> None:
        self._config = config
        self._network = network
        self._clock = MediaClock()
        self._calls: dict[str, _Known] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._holding: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until cancelled; then every call is told that the server goes down, and has a few seconds to end."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            clock = tasks.create_task(self._clock.run())
            try:
                await asyncio.wait({clock})
            finally:
                self._tasks = None
                await self._end_all()

    async def _end_all(self) -> None:
        for known in self._calls.values():
            known.call.realtime.end("shutdown")
        if self._holding:
            await asyncio.wait(self._holding, timeout=LINGER)

    async def open(
        self, offer: str, tenant: Tenant, place: ExitStack, seat: Seat, session: Session, settings: CallSettings
    ) -> tuple[str, str]:
        """Answer an offer: the call's id and our description. `place`, the caller's in this PoP, is ours from then on.

        Raises SdpError, NoPort, Draining.
        """
        call = WebRtcCall(sdp.read(offer), self._network, seat, session, settings, self._config)
        try:
            answer = await call.answer()
            if self._tasks is None:
                raise Draining("This PoP is being shut down and takes no new calls; try another one.")
        except BaseException:
            await call.close()
            raise
        call_id = fresh_id("rtc")
        self._calls[call_id] = _Known(tenant, call)
        task = self._tasks.create_task(self._hold(call_id, call, place.pop_all()))
        self._holding.add(task)
        task.add_done_callback(self._holding.discard)
        return call_id, answer

    def find(self, call_id: str, tenant: Tenant) -> RealtimeCall:
        """This tenant's call. Raises UnknownCall."""
        known = self._calls.get(call_id)
        if known is None or known.tenant.name != tenant.name:
            raise UnknownCall(f"No call has the id {call_id!r}.")
        return known.call.realtime

    async def _hold(self, call_id: str, call: WebRtcCall, place: ExitStack) -> None:
        with place:
            try:
                await call.run(call_id, self._clock)
            finally:
                del self._calls[call_id]
