"""One WebRTC call: its transport, its line, its data channel, from the answered offer to the end."""

import asyncio
import logging
import time
from contextlib import ExitStack

from voicepipe.base.tasks import TaskGroup
from voicepipe.call_api import CallSlot
from voicepipe.call_settings import CallSettings
from voicepipe.config import Config
from voicepipe.ingress.asgi_scope import LINGER
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.realtime.clients import RealtimeClients
from voicepipe.ingress.realtime.rights import Rights
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.refusal_log import RefusalLog
from voicepipe.ingress.rtp_line import RtpLine
from voicepipe.ingress.webrtc.channel import ChannelClient
from voicepipe.ingress.webrtc.drop_warnings import ENDED, LOOK_S, DropWarnings
from voicepipe.rtp import sdp
from voicepipe.rtp.clock import MediaClock
from voicepipe.rtp.transport import CLOSE_S, Transport, UdpNetwork

logger = logging.getLogger(__name__)
_complaints = RefusalLog(logger, "WebRTC peers' packets")


class WebRtcCall:
    """A WebRTC call: its transport, line and data channel. `answer` the offer, then `run` the call."""

    def __init__(
        self,
        offer: sdp.WebRtcDescription,
        network: UdpNetwork,
        slot: CallSlot,
        session: Session,
        settings: CallSettings,
        config: Config,
        rights: Rights,
        caller_network: str = "",
    ) -> None:
        """`caller_network`: as `Grant.network`."""
        self._offer = offer
        self._connect_s = config.webrtc.connect_ms / 1000
        self._transport = Transport(network, controlling=False, message_bytes=config.limits.message_bytes)
        self._line = RtpLine(offer.codec, offer.payload_type, self._transport, network=caller_network)
        self._line.media.may_send(offer.formats)
        self._line.source = lambda: self._transport.source
        self.hosted = HostedCall(self._line, slot, settings, config.limits)
        clients = RealtimeClients(self.hosted, session, rights)
        self.waits = ExitStack()
        """Held until the caller has connected, or has failed to."""
        self._channel: ChannelClient | None = None
        if offer.remote.sctp_port is not None:
            self._channel = ChannelClient(clients, self._transport.sctp, rights)
            self._transport.on_channel = self._channel.opened

    async def answer(self) -> str:
        """Our description for the offer. Raises NoPort."""
        return sdp.answer(self._offer, self._transport, await self._transport.gather(), self._line.media.ssrc)

    async def run(self, clock: MediaClock) -> None:
        """Returns when either side has hung up, or no connection came about. A failure ends this call only, and is
        logged."""
        try:
            await self._connect()
            await self._converse(clock)
        except ConnectionError as error:
            logger.warning("%s: not connected: %s", self.hosted.id, str(error))  # the error itself knows the call
        except Exception:
            logger.exception("%s: failed", self.hosted.id)
        finally:
            await self.close()
        refused, media = self._transport.invalid, self._line.media.statistics()
        logger.info("%s: %s, %d datagrams that were not the peer's", self.hosted.id, media, refused)

    async def close(self) -> None:
        """Release all resources. Safe to call twice."""
        self.waits.close()
        self.hosted.close()
        self._line.close()
        await self._transport.close()

    async def _connect(self) -> None:
        """Wait for the caller to connect. Raises ConnectionError, also where the call is ended meanwhile."""
        connecting = asyncio.create_task(self._transport.connect(self._offer.remote))
        ended = asyncio.create_task(self.hosted.hung_up.wait())
        try:
            await asyncio.wait({connecting, ended}, timeout=self._connect_s, return_when=asyncio.FIRST_COMPLETED)
            if not connecting.done():
                raise ConnectionError("it was hung up" if ended.done() else "the peer did not answer in time")
            connecting.result()
        finally:
            for task in (connecting, ended):
                task.cancel()
            self.waits.close()
            await asyncio.wait({connecting, ended}, timeout=CLOSE_S)

    async def _converse(self, clock: MediaClock) -> None:
        stop_ticking = clock.add(self._line.tick)
        try:
            async with TaskGroup() as tasks:
                jobs = {tasks.create_task(self._until_gone())}
                watch = tasks.create_task(self._watch())
                if self._channel:
                    jobs.add(tasks.create_task(self._channel.run()))
                    await self._channel.opening()
                await self.hosted.run()
                watch.cancel()
                if self._channel:  # What is left is sent for a while, unless nobody is there any more.
                    await asyncio.wait(jobs, timeout=LINGER, return_when=asyncio.FIRST_COMPLETED)
                for job in jobs:
                    job.cancel()
        finally:
            stop_ticking()

    async def _watch(self) -> None:
        """Send errors to a peer of which much is dropped, and log them."""
        warnings, media = DropWarnings(), self._line.media
        while True:
            await asyncio.sleep(LOOK_S)
            drops = self._transport.drops
            drops = drops._replace(media=drops.media + media.hasty)
            errors, is_over = warnings.look(drops, self._transport.sctp.placed, time.monotonic())
            for what, error in errors:
                _complaints.log("", "%s: much of what its peer sends is dropped (%s)", self.hosted.id, what)
                if self._channel:
                    self._channel.send_error(error)
            if is_over:
                logger.warning("%s: hung up, its data channel cannot be used", self.hosted.id)
                return self.hosted.end(ENDED)

    async def _until_gone(self) -> None:
        await self._transport.gone()
        self.hosted.end("caller")
