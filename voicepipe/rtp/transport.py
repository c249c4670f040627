"""ICE, DTLS-SRTP and data channels of one WebRTC call, by aiortc.

aiortc's own audio path is not used: datagrams of media go past its queue, straight to the call's `PacketSink`, and ours
past its sender. What of its insides is used stands here, in `ice.py` and in `sctp.py`, which guard it against its peers
as well; `tests/rtp/test_transport.py` says when an update changes what is used.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import pylibsrtp
from aiortc import (
    RTCCertificate,
    RTCDataChannel,
    RTCDataChannelParameters,
    RTCDtlsFingerprint,
    RTCDtlsParameters,
    RTCDtlsTransport,
    RTCIceCandidate,
    RTCIceGatherer,
    RTCIceParameters,
    RTCIceTransport,
)
from aiortc.rtcicetransport import candidate_from_aioice, candidate_to_aioice
from aiortc.rtcsctptransport import RTCSctpCapabilities

from voicepipe.rtp.ice import IceConnection, UdpNetwork
from voicepipe.rtp.packet import is_rtcp
from voicepipe.rtp.rtp_sender import PacketSink
from voicepipe.rtp.sctp import LONGEST_MESSAGE, Sctp

__all__ = ["DropCounts", "RemoteParameters", "Transport", "UdpNetwork", "certificate"]

logger = logging.getLogger(__name__)

CLOSE_S = 1.0
"""Seconds that each part has to notify the peer and to end; then it is dropped."""


@dataclass(frozen=True, slots=True)
class RemoteParameters:
    """The peer's end, by its description."""

    ice: RTCIceParameters
    candidates: Sequence[RTCIceCandidate]
    """None where the peer will be known by the packets that it sends."""
    fingerprints: tuple[RTCDtlsFingerprint, ...]
    dtls_role: Literal["client", "server"]
    """Our role in the handshake: the client begins it ("active")."""
    sctp_port: int | None = None
    """None: no data channels."""
    max_message: int = 65536


class DropCounts(NamedTuple):
    """Counts of what the peer sent and was dropped since the call began, by the reason."""

    media: int
    """Packets of sound: more than any phone sends."""
    data: int
    """Datagrams of the data channels beyond the peer's share of the processor's time."""
    lies: int
    """SCTP packets and chunks that no honest peer sends."""
    unplaced: int
    """SCTP chunks for which there is no room; honest peers send some of them, and then again."""


@cache
def certificate() -> RTCCertificate:
    """The process's own certificate: one for all calls, as making a key takes time."""
    return RTCCertificate.generateCertificate()


class Transport:
    """The transport of one WebRTC call: ICE, DTLS-SRTP and data channels, by aiortc. `controlling`: we made the offer;
    `message_bytes`: the longest message that is accepted from the peer, at most `LONGEST_MESSAGE`."""

    def __init__(self, network: UdpNetwork, *, controlling: bool, message_bytes: int = LONGEST_MESSAGE) -> None:
        self.on_channel: Callable[[RTCDataChannel], None] | None = None
        """Called with data channels that the peer opens."""
        self._unsigned = 0
        """Datagrams that were no SRTP of this call's."""
        self._ice = IceConnection(network, self)
        self._ice.ice_controlling = controlling
        gatherer = RTCIceGatherer(iceServers=[])
        gatherer._connection = self._ice
        self._ice_transport = RTCIceTransport(gatherer)
        self._dtls = RTCDtlsTransport(self._ice_transport, [certificate()])
        self.sctp = Sctp(self._dtls, message_bytes)
        self.sctp.on("datachannel", self._opened)
        self._gone = asyncio.Event()
        self._dtls.on("statechange", self._changed)
        self._up = False
        self._sink: PacketSink | None = None

    @property
    def invalid(self) -> int:
        """Datagrams that were not the peer's, or that no honest peer sends."""
        return self._unsigned + self._ice.refused + self.sctp.refused

    @property
    def source(self) -> str:
        """The peer's IP address on the path in use; empty: there is none yet."""
        pair = self._ice.pair
        return str(pair.remote_addr[0]) if pair else ""

    @property
    def drops(self) -> DropCounts:
        """Drops of what the peer itself has sent, judged by its address."""
        return DropCounts(self._ice.media_refused, self._ice.data_refused, self.sctp.refused, self.sctp.unplaced)

    async def gather(self) -> list[RTCIceCandidate]:
        """Bind sockets; returns our candidates. Raises NoPort."""
        await self._ice.gather_candidates()
        return [candidate_from_aioice(candidate) for candidate in self._ice.local_candidates]

    @property
    def ice_parameters(self) -> RTCIceParameters:
        return RTCIceParameters(usernameFragment=self._ice.local_username, password=self._ice.local_password)

    @property
    def fingerprints(self) -> list[RTCDtlsFingerprint]:
        return list(certificate().getFingerprints())

    async def connect(self, remote: RemoteParameters) -> None:
        """Connect ICE, then DTLS, then SCTP where the peer wants it; waits for ever for a peer that sends nothing.
        Raises ConnectionError."""
        self._dtls._set_role(remote.dtls_role)
        if remote.ice.iceLite:  # Such a peer leaves it to us to choose a path (RFC 8445, 6.1.1).
            self._ice.ice_controlling = True
        for candidate in remote.candidates:
            # Names that only the peer's own network resolves (mDNS) are left out: its packets tell the address. Nor do
            # we ever say that these were all, since then ICE would not wait for such packets.
            if candidate.protocol.lower() == "udp" and not candidate.ip.endswith(".local"):
                await self._ice.add_remote_candidate(candidate_to_aioice(candidate))
        await self._ice_transport.start(remote.ice)
        if self._ice_transport.state != "completed":
            raise ConnectionError("no path to the peer was found (ICE)")
        await self._dtls.start(RTCDtlsParameters(list(remote.fingerprints)))
        if self._dtls.state != "connected":
            raise ConnectionError("the peer's keys could not be agreed on (DTLS)")
        self._up = self._ice.is_up = True
        if remote.sctp_port is not None:
            await self.sctp.start(RTCSctpCapabilities(remote.max_message), remote.sctp_port)

    def open_channel(self, label: str) -> RTCDataChannel:
        """Open a data channel of ours, once there is a connection."""
        return RTCDataChannel(self.sctp, RTCDataChannelParameters(label=label))

    def deliver_to(self, sink: PacketSink) -> None:
        """As `PacketWire.deliver_to`."""
        self._sink = sink

    def send_rtp(self, packet: bytes) -> None:
        """Protect and send; dropped while there is no connection."""
        if self._up:
            self._send(self._dtls._tx_srtp.protect(packet))

    def send_rtcp(self, packet: bytes) -> None:
        """Protect and send; dropped while there is no connection."""
        if self._up:
            self._send(self._dtls._tx_srtp.protect_rtcp(packet))

    def _send(self, data: bytes) -> None:
        if pair := self._ice.pair:
            pair.protocol.transport.sendto(data, pair.remote_addr)

    async def gone(self) -> None:
        """Returns when the peer has hung up, or nothing has come from it for half a minute (RFC 7675)."""
        await self._gone.wait()

    async def close(self) -> None:
        """Notify the peer, and release the socket, within a few seconds. Safe to call twice."""
        self._up = False
        try:
            for step in (self.sctp.stop, self._dtls.stop, self._ice_transport.stop, self._ice.close):
                try:
                    async with asyncio.timeout(CLOSE_S):
                        await step()
                except Exception as error:  # Whatever state a peer has brought them into, the next one has its turn.
                    logger.debug("%s: %s", step.__qualname__, error)
        finally:
            self.sctp.drop()
            self._ice.drop()
            self._gone.set()
            # Who listened knows us: in a circle, all of it would stay until the collector's next full round.
            self._sink = self.on_channel = self.sctp.on_overlong = self._ice.reader = None
            for emitter in (self.sctp, self._dtls):  # aiortc does so itself only where a connection came about
                emitter.remove_all_listeners()

    def _opened(self, channel: RTCDataChannel) -> None:
        if self.on_channel:
            self.on_channel(channel)

    def _changed(self) -> None:
        if self._dtls.state in ("closed", "failed"):
            self._up = False
            self._gone.set()

    def srtp(self, data: bytes, arrived: float) -> None:
        """As `SrtpReader.srtp`."""
        session = self._dtls._rx_srtp
        if session is None:
            return  # The peer was faster than its own handshake.
        try:
            media = session.unprotect_rtcp(data) if is_rtcp(data) else session.unprotect(data)
        except (pylibsrtp.Error, ValueError):
            self._unsigned += 1
            return
        if self._sink:
            self._sink.datagram(media, arrived)
