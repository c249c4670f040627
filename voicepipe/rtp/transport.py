"""ICE, DTLS-SRTP and data channels of one WebRTC call, by aiortc. The only file that knows aiortc's insides.

aiortc's own audio path is not used: datagrams of media go past its queue, straight to `on_media`, and ours past its
sender. aioice gathers neither loopback addresses nor chosen ones, and knows neither a port range nor an address in
front of a 1:1 NAT: `_Connection` adds these. `tests/rtp/test_transport.py` says when an update changes what is used
here.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import pylibsrtp
from aioice import Candidate, Connection
from aioice.candidate import candidate_foundation, candidate_priority
from aioice.ice import StunProtocol
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
    RTCSctpTransport,
)
from aiortc.rtcicetransport import candidate_from_aioice, candidate_to_aioice
from aiortc.rtcsctptransport import RTCSctpCapabilities

from voicepipe.errors import NoPort
from voicepipe.rtp.packet import is_rtcp
from voicepipe.rtp.ports import candidates, taken

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Network:
    """Where a call's UDP socket is bound, and what of it is told to the peer."""

    addresses: tuple[str, ...] = ("127.0.0.1",)
    """Of this machine."""
    public: str = ""
    """The address that a 1:1 NAT shows for them; empty: there is none."""
    ports: tuple[int, int] = (0, 0)
    """First and last; (0, 0): any."""


@dataclass(frozen=True, slots=True)
class Remote:
    """What the peer's description says of its end."""

    ice: RTCIceParameters
    candidates: Sequence[RTCIceCandidate]
    """None where the peer will be known by the packets that it sends."""
    fingerprints: tuple[RTCDtlsFingerprint, ...]
    dtls_role: Literal["client", "server"]
    """Ours in the handshake: the client begins it ("active")."""
    sctp_port: int | None = None
    """None: no data channels."""
    max_message: int = 65536


@cache
def certificate() -> RTCCertificate:
    """This process's own: one for all calls, as making a key takes time."""
    return RTCCertificate.generateCertificate()


class Transport:
    """One peer connection's lower half. `controlling`: we made the offer."""

    def __init__(self, network: Network, *, controlling: bool) -> None:
        self.on_media: Callable[[bytes, float], None] = _ignored
        """Gets RTP and RTCP, decrypted, and the monotonic second at which it came."""
        self.on_channel: Callable[[RTCDataChannel], None] = _ignored
        """Gets data channels that the peer opens."""
        self.invalid = 0
        """Datagrams that were no SRTP of this call's."""
        self._ice = _Connection(network, self._srtp)
        self._ice.ice_controlling = controlling
        gatherer = RTCIceGatherer(iceServers=[])
        gatherer._connection = self._ice
        self._ice_transport = RTCIceTransport(gatherer)
        self._dtls = RTCDtlsTransport(self._ice_transport, [certificate()])
        self.sctp = RTCSctpTransport(self._dtls)
        self.sctp.on("datachannel", lambda channel: self.on_channel(channel))
        self._gone = asyncio.Event()
        self._dtls.on("statechange", self._changed)
        self._up = False

    async def gather(self) -> list[RTCIceCandidate]:
        """Bind; our candidates. Raises NoPort."""
        await self._ice.gather_candidates()
        return [candidate_from_aioice(candidate) for candidate in self._ice.local_candidates]

    @property
    def ice_parameters(self) -> RTCIceParameters:
        return RTCIceParameters(usernameFragment=self._ice.local_username, password=self._ice.local_password)

    @property
    def fingerprints(self) -> list[RTCDtlsFingerprint]:
        return list(certificate().getFingerprints())

    async def connect(self, remote: Remote) -> None:
        """ICE, then DTLS, then SCTP where the peer wants it; waits for ever for a peer that sends nothing.

        Raises ConnectionError.
        """
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
        self._up = True
        if remote.sctp_port is not None:
            await self.sctp.start(RTCSctpCapabilities(remote.max_message), remote.sctp_port)

    def open_channel(self, label: str) -> RTCDataChannel:
        """A data channel of ours, which opens once there is a connection."""
        return RTCDataChannel(self.sctp, RTCDataChannelParameters(label=label))

    def send_rtp(self, packet: bytes) -> None:
        """Protect and send; dropped while there is no connection."""
        if self._up:
            self._send(self._dtls._tx_srtp.protect(packet))

    def send_rtcp(self, packet: bytes) -> None:
        """Protect and send; dropped while there is no connection."""
        if self._up:
            self._send(self._dtls._tx_srtp.protect_rtcp(packet))

    def _send(self, data: bytes) -> None:
        if pair := self._ice._nominated.get(1):  # Another one whenever the peer has found a better path.
            pair.protocol.transport.sendto(data, pair.remote_addr)

    async def gone(self) -> None:
        """Returns when the peer has hung up, or has not been heard from for half a minute (RFC 7675)."""
        await self._gone.wait()

    async def close(self) -> None:
        """Tell the peer, and let go of the socket. Safe to call twice."""
        self._up = False
        for step in (self.sctp.stop, self._dtls.stop, self._ice_transport.stop, self._ice.close):
            try:
                await step()
            except Exception as error:  # Whatever state a peer has brought them into, the next one has its turn.
                logger.debug("%s: %s", step.__qualname__, error)
        self._gone.set()
        # Who listened knows us: in a circle, all of it would stay until the collector's next full round.
        self.on_media = self.on_channel = _ignored

    def _changed(self) -> None:
        if self._dtls.state in ("closed", "failed"):
            self._up = False
            self._gone.set()

    def _srtp(self, data: bytes) -> None:
        session = self._dtls._rx_srtp
        if session is None:
            return  # The peer was faster than its own handshake.
        try:
            media = session.unprotect_rtcp(data) if is_rtcp(data) else session.unprotect(data)
        except (pylibsrtp.Error, ValueError):
            self.invalid += 1
            return
        self.on_media(media, time.monotonic())


def _ignored(*_: object) -> None:
    """Who gets what nobody has asked for."""


class _Protocol(StunProtocol):
    """A UDP socket that carries STUN, DTLS and SRTP, told apart by their first byte (RFC 7983)."""

    def __init__(self, connection: "_Connection") -> None:
        super().__init__(connection)
        self._connection = connection

    def datagram_received(self, data: bytes | str, addr: tuple[Any, ...]) -> None:
        assert isinstance(data, bytes)
        if not data:
            return
        if 128 <= data[0] <= 191:
            self._connection.on_srtp(data)
        # DTLS has no key to tell strangers by, but the peer's addresses are known by STUN, which has.
        elif data[0] <= 3 or self._connection.knows(addr):
            super().datagram_received(data, addr)


class _Connection(Connection):
    """aioice's ICE agent on the addresses and ports that we choose."""

    def __init__(self, network: Network, on_srtp: Callable[[bytes], None]) -> None:
        super().__init__(ice_controlling=False)
        self.on_srtp = on_srtp
        self._network = network

    async def gather_candidates(self) -> None:
        if self._local_candidates_start:
            return
        self._local_candidates_start = True
        refusal: OSError | None = None
        for address in self._network.addresses:
            try:
                protocol = await self._bound(address)
            except OSError as error:  # One of several may be gone: a VPN, a lease.
                refusal = error
                continue
            host, port = protocol.transport.get_extra_info("sockname")[:2]
            protocol.local_candidate = Candidate(
                foundation=candidate_foundation("host", "udp", host),
                component=1, transport="udp", priority=candidate_priority(1, "host", 65535 - len(self._protocols)),
                host=self._network.public or host, port=port, type="host",
            )  # fmt: skip
            self._protocols.append(protocol)
            self._local_candidates.append(protocol.local_candidate)
        self._local_candidates_end = True
        if refusal and not self._protocols:
            raise NoPort(
                f"No UDP port can be had on {', '.join(self._network.addresses)} ({refusal}): set webrtc.addresses to "
                "addresses of this machine, and webrtc.first_port and last_port to a wider range."
            )

    async def _bound(self, address: str) -> _Protocol:
        loop, refusal = asyncio.get_running_loop(), OSError("there is no port to try")
        for port in candidates(self._network.ports):
            try:
                return (await loop.create_datagram_endpoint(lambda: _Protocol(self), local_addr=(address, port)))[1]
            except OSError as error:
                refusal = error
                if not taken(error):
                    break
        raise refusal

    def knows(self, address: tuple[Any, ...]) -> bool:
        """Whether the peer has named it, or proved by STUN that it is theirs."""
        return any((known._network_host, known.port) == address[:2] for known in self._remote_candidates)
