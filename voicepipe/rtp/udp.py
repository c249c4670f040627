"""A phone call's two UDP sockets: RTP on an even port and RTCP on the next, or both on the first (rtcp-mux).

Plain sockets: as cheap as asyncio's endpoints, and reading can be stopped, so that whoever floods one call's port takes
nothing from the others'.
"""

import asyncio
import socket
import struct
import time
from collections.abc import Callable
from contextlib import ExitStack

import pylibsrtp

from voicepipe.base.errors import NoPort
from voicepipe.base.token_bucket import Bucket, Rate
from voicepipe.rtp.latch import Address, Latch
from voicepipe.rtp.packet import HEADER, is_rtcp
from voicepipe.rtp.ports import candidates, taken
from voicepipe.rtp.rtp_sender import PacketSink
from voicepipe.rtp.sdes import Srtp
from voicepipe.rtp.sip_sdp import SipDescription

LONGEST = 1500
"""Bytes of the longest datagram; phones send no longer ones."""
WINDOW_S, MOST = 0.020, 50
"""Seconds, and datagrams in them, fifty times those of a call: more wait in the socket until the time is over, and what
does not fit in there is dropped by the system. What a stall of the network held back is still read in no time."""
REPORTS = Rate(50, 20)
"""Datagrams of RTCP at once, and a second, at both ports together. Phones send one in 5 s (RFC 3550, 6.2), FreeSWITCH
one each 100 ms if configured to (`rtcp-audio-interval-msec`). What a network held up for some seconds comes at once."""
EXPEDITED = 0xB8
"""Type of service of voice (DSCP EF, RFC 4594): routers that support it forward it first."""
_SEQ_SSRC = struct.Struct("!2xH4xI")
_NOWHERE = "0.0.0.0"


class UdpMedia:
    """The two UDP sockets of a phone call, as its `PacketWire`: RTP on an even port and RTCP on the next, or both on
    the first (rtcp-mux). `open`, then `agree` on each description of the peer's, `close` at the end."""

    def __init__(self, address: str, ports: tuple[int, int] = (0, 0)) -> None:
        """`address`: of this machine; `ports`: first and last, (0, 0): any."""
        self.invalid = 0
        """Datagrams that were not the peer's."""
        self.refused: Address | None = None
        """The source of the last of them."""
        self._address, self._ports = address, ports
        self._latch: Latch | None = None
        self._srtp: Srtp | None = None
        self._mux = self._held = False
        self._said_rtcp = self._rtcp_to = (_NOWHERE, 0)
        self._reports = Bucket(REPORTS)
        self._sockets: tuple[_Socket, ...] = ()
        self._sink: PacketSink | None = None

    @property
    def source(self) -> str:
        """The IP address that the peer's media come from, or that its SDP gives; empty: neither is known."""
        host = self._latch.target[0] if self._latch else _NOWHERE
        return "" if host == _NOWHERE else host

    def open(self) -> int:
        """Bind, and listen; returns the RTP port. Raises NoPort."""
        refusal: OSError | None = None
        for port in candidates(self._ports, pairs=True):
            try:
                rtp, rtcp = _bound_pair(self._address, port)
            except OSError as error:
                refusal = error
                if taken(error):
                    continue
                break
            self._sockets = _Socket(rtp, self.rtp), _Socket(rtcp, self.rtcp)
            return int(rtp.getsockname()[1])
        raise NoPort(
            f"No pair of UDP ports can be had on {self._address} ({refusal or 'the range is too small'}): set "
            "sip.first_port and sip.last_port to a wider range, or sip.host to an address of this machine."
        )

    def agree(self, said: SipDescription, signalled: str, srtp: Srtp | None) -> None:
        """Apply the peer's description from now on. `signalled`: the IP address that its signalling came from."""
        here = _is_ours(signalled)
        if self._latch is None:
            self._latch = Latch(said.remote, signalled, here=here)
        else:
            self._latch.again(said.remote, signalled, here=here, resumed=self._held and not said.held)
        self._held = said.held
        if said.rtcp != self._said_rtcp:
            self._said_rtcp = self._rtcp_to = said.rtcp
        self._mux, self._srtp = said.rtcp_mux, srtp

    def deliver_to(self, sink: PacketSink) -> None:
        """As `PacketWire.deliver_to`."""
        self._sink = sink

    def send_rtp(self, packet: bytes) -> None:
        """Protect and send; dropped while nothing is agreed."""
        if self._latch:
            data = self._srtp.outbound.protect(packet) if self._srtp else packet
            self._send(0, data, self._latch.target)

    def send_rtcp(self, packet: bytes) -> None:
        """Protect and send; dropped while nothing is agreed."""
        if self._latch:
            data = self._srtp.outbound.protect_rtcp(packet) if self._srtp else packet
            which, target = (0, self._latch.target) if self._mux else (1, self._rtcp_to)
            self._send(which, data, target)

    def close(self) -> None:
        """Release the sockets. Safe to call twice."""
        for one in self._sockets:
            one.close()
        self._sockets = ()
        self._sink = None

    def _send(self, which: int, data: bytes, target: Address) -> None:
        if self._sockets and target[0] != _NOWHERE:
            self._sockets[which].send(data, target)

    def rtp(self, data: bytes, source: Address, arrived: float) -> None:
        """A datagram at the port for RTP, at the monotonic second `arrived`."""
        latch = self._latch
        if latch is None or not latch.acceptable(source) or len(data) < HEADER or data[0] >> 6 != 2:
            return self._refuse(source)
        if is_rtcp(data):
            return self.rtcp(data, source, arrived)
        try:
            media = self._srtp.inbound.unprotect(data) if self._srtp else data
        except (pylibsrtp.Error, ValueError):
            return self._refuse(source)
        seq, ssrc = _SEQ_SSRC.unpack_from(media)
        if not latch.takes(source, ssrc, seq):
            return self._refuse(source)
        if self._sink:
            self._sink.datagram(media, arrived)

    def rtcp(self, data: bytes, source: Address, arrived: float) -> None:
        """A datagram of RTCP, at either port."""
        latch = self._latch
        if latch is None or not latch.acceptable(source) or len(data) < 8:
            return self._refuse(source)
        if not self._reports.admits(arrived):
            return self._refuse(source)
        try:
            media = self._srtp.inbound.unprotect_rtcp(data) if self._srtp else data
        except (pylibsrtp.Error, ValueError):
            return self._refuse(source)
        # Who knows the stream's SSRC is its sender, whatever a NAT makes of it.
        if int.from_bytes(media[4:8]) == latch.ssrc:
            self._rtcp_to = source
        if self._sink:
            self._sink.datagram(media, arrived)

    def _refuse(self, source: Address) -> None:
        self.invalid += 1
        self.refused = source


class _Socket:
    """Passes on what comes to one of the two ports, with its source and the monotonic second at which it came."""

    def __init__(self, sock: socket.socket, came: Callable[[bytes, Address, float], None]) -> None:
        self._sock = sock
        self._came = came
        self._loop = asyncio.get_running_loop()
        self._began, self._read = 0.0, 0
        self._resume: asyncio.TimerHandle | None = None
        self._loop.add_reader(sock, self._readable)

    def send(self, data: bytes, target: Address) -> None:
        try:
            self._sock.sendto(data, target)
        except OSError:  # A full buffer, an address without a route: a packet that is lost, as others are.
            pass

    def close(self) -> None:
        if self._resume:
            self._resume.cancel()
        self._loop.remove_reader(self._sock)
        self._sock.close()

    def _readable(self) -> None:
        """Read all datagrams that have come: with one for each wake-up a call falls behind where wake-ups are over 20
        ms apart."""
        arrived = time.monotonic()
        if arrived - self._began > WINDOW_S:
            self._began, self._read = arrived, 0
        while self._read < MOST:
            try:
                data, source = self._sock.recvfrom(LONGEST + 1)
            except OSError:  # Nothing more, or an error for one that we have sent.
                return
            self._read += 1
            if len(data) <= LONGEST:
                self._came(data, source, arrived)
        if self._sock.fileno() < 0:  # What was read ended the call.
            return
        self._loop.remove_reader(self._sock)
        self._resume = self._loop.call_later(WINDOW_S, self._loop.add_reader, self._sock, self._readable)


def _bound_pair(address: str, port: int) -> tuple[socket.socket, socket.socket]:
    """Bind to an even port and the next; where the system chooses (0), to the one that it chose and its neighbour.
    Raises OSError."""
    with ExitStack() as stack:
        one = stack.enter_context(_bound(address, port))
        port = one.getsockname()[1]
        other = stack.enter_context(_bound(address, port ^ 1))
        stack.pop_all()
    return (other, one) if port % 2 else (one, other)


def _is_ours(address: str) -> bool:
    """Whether this machine has this IPv4 address: only then can a socket listen on it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _bound(address: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, EXPEDITED)
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock
