"""The WebRTC calls of one PoP: an offer in, an answer out, and a call that outlives the request."""

import asyncio
import logging
from contextlib import ExitStack
from dataclasses import dataclass

from voicepipe.agent import CallSettings
from voicepipe.call_api import Seat, Tenant
from voicepipe.config import Config
from voicepipe.errors import UnknownCall
from voicepipe.ingress.realtime.call import RealtimeCall
from voicepipe.ingress.realtime.items import fresh_id
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.webrtc.channel import ChannelClient
from voicepipe.ingress.webrtc.line import WebRtcLine
from voicepipe.rtp import sdp
from voicepipe.rtp.clock import MediaClock
from voicepipe.rtp.transport import Network, Remote, Transport

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Peer:
    """One call and what carries it."""

    tenant: Tenant
    call: RealtimeCall
    line: WebRtcLine
    transport: Transport
    channel: ChannelClient | None
    remote: Remote


class WebRtcCalls:
    """`run` owns the calls' tasks and their one clock: nothing is taken before it runs."""

    def __init__(self, config: Config, network: Network) -> None:
        self._config = config
        self._network = network
        self._clock = MediaClock()
        self._peers: dict[str, _Peer] = {}
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Until cancelled; then every call is told that the server goes down."""
        async with asyncio.TaskGroup() as self._tasks:
            await self._clock.run()

    async def open(
        self, offer: str, tenant: Tenant, place: ExitStack, seat: Seat, session: Session, settings: CallSettings
    ) -> tuple[str, str]:
        """Answer an offer: the call's id and our description. `place`, the caller's in this PoP, is ours from then on.

        Raises SdpError, ConfigError (no UDP port).
        """
        assert self._tasks is not None
        said = sdp.read(offer)
        transport = Transport(self._network, controlling=False)
        line = WebRtcLine(said.codec, said.payload_type, transport)
        transport.on_media = line.media.datagram
        try:
            answer = sdp.answer(said, transport, await transport.gather(), line.media.ssrc)
        except BaseException:
            await transport.close()
            raise
        call = RealtimeCall(line, seat, session, settings, self._config.limits)
        channel = None
        if said.remote.sctp_port is not None:
            channel = ChannelClient(call)
            transport.on_channel = channel.opened
        call_id = fresh_id("rtc")
        peer = self._peers[call_id] = _Peer(tenant, call, line, transport, channel, said.remote)
        self._tasks.create_task(self._hold(call_id, peer, place.pop_all()))
        return call_id, answer

    def find(self, call_id: str, tenant: Tenant) -> RealtimeCall:
        """This tenant's call. Raises UnknownCall."""
        peer = self._peers.get(call_id)
        if peer is None or peer.tenant.name != tenant.name:
            raise UnknownCall(f"No call has the id {call_id!r}.")
        return peer.call

    async def _hold(self, call_id: str, peer: _Peer, place: ExitStack) -> None:
        with place:
            try:
                async with asyncio.timeout(self._config.webrtc.connect_ms / 1000):
                    await peer.transport.connect(peer.remote)
                await self._converse(peer)
            except (TimeoutError, ConnectionError) as error:
                logger.warning("%s: not connected: %s", call_id, str(error) or "the peer did not answer in time")
            except Exception:
                logger.exception("%s: failed", call_id)
            finally:
                del self._peers[call_id]
                await peer.transport.close()
        logger.info("%s: %s", call_id, peer.line.media.statistics())

    async def _converse(self, peer: _Peer) -> None:
        stop_ticking = self._clock.add(peer.line.tick)
        try:
            async with asyncio.TaskGroup() as tasks:
                jobs = {tasks.create_task(self._until_gone(peer))}
                if peer.channel:
                    jobs.add(tasks.create_task(peer.channel.run()))
                await peer.call.run()
                if peer.channel:  # What is left to be told is told, unless nobody is there any more.
                    await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
                for job in jobs:
                    job.cancel()
        finally:
            stop_ticking()
            peer.line.media.close()

    @staticmethod
    async def _until_gone(peer: _Peer) -> None:
        await peer.transport.gone()
        peer.call.end("caller")
