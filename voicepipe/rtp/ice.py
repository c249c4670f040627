"""ICE on the addresses and ports that we choose, and the guard at a call's socket. The only file that knows aioice's
insides (0.13.0).

aioice gathers neither loopback addresses nor chosen ones, and knows neither a port range nor an address in front of a
1:1 NAT. And it trusts whoever sends. What reaches a port is told apart by its first byte (RFC 7983), and what no honest
peer sends goes before anything is parsed:

- *STUN requests* without our user name, *responses* to nothing that was asked: strangers get no answer. Those with our
  user name are limited, from addresses of the peer's (`CHECKS`) and from others (`STRANGE_CHECKS`) apart.
- *What aioice cannot parse*: it raises struct.error, which ends in the log as a traceback, or takes it for data.
- *DTLS* from an address that is not the peer's, as STUN has proved it or the peer has named it.
- *SRTP* beyond what any phone sends (`MEDIA`); from other addresses, as after a change of a NAT's mapping, less
  (`STRANGE_MEDIA`): it has a signature.
- *The queue to DTLS*, which has no bound and which nobody reads before ICE is done: `MOST_QUEUED`. A datagram with many
  records is taken apart, since of each datagram only one is read, and the rest would stay in OpenSSL's memory.
- *The processor's time* for DTLS and SCTP: what a peer sends when its `Allowance` is used up waits in that queue. What
  finds it full is dropped, for SCTP to send it again. Whatever a peer finds to keep aiortc or OpenSSL busy with (a new
  handshake, a SACK for a large window) ends there. An alert, by which it hangs up, has room in the queue all the same.
- *Addresses*: a peer that shows ever new ones has the oldest forgotten (`MOST_REMOTE`).
"""

import asyncio
import math
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, cast

from aioice import Candidate, Connection
from aioice.candidate import candidate_foundation, candidate_priority
from aioice.ice import CandidatePair, ConnectionClosed, ConnectionEvent, StunProtocol
from aioice.stun import Message, TransactionError

from voicepipe.base.errors import NoPort
from voicepipe.base.token_bucket import Allowance, Bucket, Rate
from voicepipe.rtp.latch import Address
from voicepipe.rtp.ports import candidates, taken

MEDIA = Rate(1000, 250)
"""Datagrams of media at once, and a second. A phone sends 50 packets of 20 ms, the shortest that browsers make are 10
ms: 100; RTX or FEC at most doubles that, and RTCP is 5 % (RFC 3550, 6.2): 210. 20 s that a network held up may come at
once."""
STRANGE_MEDIA = Rate(50, 100)
"""Datagrams of media from an address that is not yet known. A NAT's new mapping is proved by the peer's next check,
which libwebrtc sends within 2.5 s: 125 packets of 20 ms."""
CHECKS = Rate(100, 25)
"""STUN checks at once, and a second. libwebrtc sends a check each 48 ms over all paths together (WEAK_PING_INTERVAL):
21 a second; RFC 8445 one each 50 ms (14.2); stacks that begin with one each 20 ms have checked all pairs, 100 at most
(6.1.2.5), after 2 s."""
STRANGE_CHECKS = Rate(60, 20)
"""STUN checks from addresses that are not yet known. An address is known from its first authentic check on: these are
one or two for each of its addresses, and those of anybody who has seen the user name on its way."""
MOST_QUEUED, MOST_ALERTS = 256, 8
"""Datagrams that may wait. A message of 256 KiB, the longest, is 226 datagrams of 1,163 bytes, and may all be in
flight."""
MOST_RECORDS = 16
"""DTLS records in a datagram: the longest flight of DTLS 1.2 has five messages (RFC 6347, 4.2.4), its certificate in
two or three fragments."""
MOST_REMOTE = 64
"""Addresses of a peer; it may name half of them: ten interfaces with a host, a mapped and a relayed address each."""
ALL_PEERS = Rate(0.2, 0.2)
"""Seconds of the processor at once, and a second, for the DTLS and SCTP of all peers together."""
ONE_PEER = Rate(0.1, 0.05)
"""Seconds of the processor for one peer. A datagram takes 0.1 to 0.3 ms on the machines that were measured: 160 to 500
of them a second, 190 to 600 kB. A Realtime client sends some events for each turn; its sound comes by RTP."""
SURE = Rate(0.05, 0.01)
"""Seconds of the processor that each peer has whatever the others use. An event takes 0.1 to 0.3 ms."""
HANDSHAKE = Rate(64, 10)
"""Datagrams of a handshake: its time is not measured, since other tasks' would be measured with it (`recv`). A flight
has eight at most, and is sent again after 1 s, 2 s, 4 s ... (RFC 6347, 4.2.4.1), by BoringSSL from 50 ms on: seven
times in 3.2 s."""
PAUSE_S = 0.02
"""Seconds for which a peer whose share is used up waits, once or several times."""
SLICE_S = 0.005
"""Seconds of the processor after which others have their turn."""

_COOKIE = b"\x21\x12\xa4\x42"
_REQUEST, _ANSWERS = b"\0\1", (b"\1\1", b"\1\x11")
_ALERT = 21
_RECORD = struct.Struct("!11xH")


@dataclass(frozen=True, slots=True)
class UdpNetwork:
    """The network settings of a PoP for calls: the addresses of their UDP sockets, the public address, and the
    processor's time that all peers share."""

    addresses: tuple[str, ...] = ("127.0.0.1",)
    """Addresses of this machine."""
    public: str = ""
    """The address that a 1:1 NAT shows for them; empty: there is none."""
    ports: tuple[int, int] = (0, 0)
    """First and last; (0, 0): any."""
    commons: Bucket = field(default_factory=lambda: Bucket(ALL_PEERS), compare=False)
    """The processor's time for the DTLS and SCTP of all peers."""


def records(datagram: bytes) -> Iterator[bytes]:
    """The DTLS records in a datagram, `MOST_RECORDS` at most; the rest is one, which DTLS refuses."""
    start = 0
    for _ in range(MOST_RECORDS):
        if start >= len(datagram):
            return
        end = start + _length(datagram, start)
        yield datagram[start:end]
        start = end


def _length(datagram: bytes, start: int) -> int:
    """Length of the record that begins there. DTLS 1.3 has a short header (RFC 9147, 4), which may leave its length
    out."""
    kind = datagram[start]
    if kind >> 5 != 1:
        return 13 + _RECORD.unpack_from(datagram, start)[0] if start + 13 <= len(datagram) else len(datagram)
    at = start + (3 if kind & 0x08 else 2)
    if kind & 0x10 or not kind & 0x04 or at + 2 > len(datagram):
        return len(datagram)
    return at + 2 - start + int.from_bytes(datagram[at : at + 2])


class _Sending:
    """A transport that sends by the socket itself, in the same time. uvloop would remember each address that something
    was sent to, up to 2,048 of them: a PoP's memory would grow with its callers for hours."""

    def __init__(self, transport: asyncio.BaseTransport, opened: socket.socket) -> None:
        self._transport: Any = transport
        self._socket = opened

    def sendto(self, data: bytes, address: Address) -> None:
        try:
            self._socket.sendto(data, address)
        except (BlockingIOError, InterruptedError):
            self._transport.sendto(data, address)  # It waits until the system has room.
        except OSError:  # No way leads there, or the socket is closed: as if it were lost on its way.
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Protocol(StunProtocol):
    """A UDP socket that carries STUN, DTLS and SRTP."""

    def __init__(self, connection: "IceConnection", opened: socket.socket) -> None:
        super().__init__(connection)
        self._connection = connection
        self._socket = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.BaseTransport, _Sending(transport, self._socket)))

    def datagram_received(self, data: bytes | str, addr: tuple[Any, ...]) -> None:
        assert isinstance(data, bytes)
        first, source, connection = data[0] if data else 255, (addr[0], addr[1]), self._connection
        if 128 <= first <= 191:
            connection.media_received(data, source)
        elif 20 <= first <= 63 and source in connection.known:
            connection.data_received(data, 1)
        elif first <= 3 and self._is_welcome(data, source):
            try:
                super().datagram_received(data, addr)
            except Exception:  # struct.error of its parser, KeyError of an attribute that is not there.
                connection.refused += 1
        else:
            connection.refused += 1

    async def request(
        self, request: Message, addr: Address, integrity_key: bytes | None = None, retransmissions: int | None = None
    ) -> tuple[Message, Address]:
        """As aioice's, whose timers each form a reference cycle with the call: by the frames that they have passed."""
        try:
            return await super().request(request, addr, integrity_key, retransmissions)
        except TransactionError as error:
            error.__traceback__ = None
            raise

    def _is_welcome(self, data: bytes, source: Address) -> bool:
        """Whether a STUN message may be the peer's: by its header and the user name, which no stranger knows."""
        if len(data) < 20 or data[4:8] != _COOKIE:
            return False
        if data[:2] == _REQUEST:
            return self._connection.user in data and self._connection.may_check(source)
        return data[:2] in _ANSWERS and data[8:20] in self.transactions


class SrtpReader(Protocol):
    """Reads the packets that come by ICE besides STUN and DTLS."""

    def srtp(self, data: bytes, arrived: float) -> None:
        """An SRTP or SRTCP packet that reached the socket at the monotonic second `arrived`."""


class IceConnection(Connection):
    """aioice's ICE agent, with limits on what a peer or a stranger can send."""

    def __init__(self, network: UdpNetwork, reader: SrtpReader) -> None:
        super().__init__(ice_controlling=False)
        self.reader: SrtpReader | None = reader
        self.refused = 0
        """Datagrams that no honest peer sends, or sends so many of."""
        self.media_refused = self.data_refused = 0
        """Those among them that came from the peer's own addresses and were too many: SRTP; DTLS since it is up."""
        self.known: set[Address] = set()
        """Addresses that the peer has named, or proved by STUN to be its own."""
        self.user = f"{self.local_username}:".encode()
        """The beginning of the user name in requests to us."""
        self._network = network
        self._media, self._strange_media = Bucket(MEDIA), Bucket(STRANGE_MEDIA)
        self._checks, self._strange_checks = Bucket(CHECKS), Bucket(STRANGE_CHECKS)
        self._handshake = Bucket(HANDSHAKE)
        self.is_up = False
        """The handshake is over: from now on the peer has a share of the processor's time."""
        self._allowance = Allowance(network.commons, Bucket(ONE_PEER, owes=math.inf), Bucket(SURE))
        """The peer's share of the processor's time, in seconds. It owes all that it had beyond its own."""
        self._began = self._slice = 0.0
        """When the thread's clock handed out a datagram; time of datagrams since others had their turn."""

    # --- what arrives

    def media_received(self, data: bytes, source: Address) -> None:
        now = time.monotonic()
        known = source in self.known
        if (self._media if known else self._strange_media).admits(now):
            if self.reader:
                self.reader.srtp(data, now)
        else:
            self.refused += 1
            self.media_refused += known

    def may_check(self, source: Address) -> bool:
        """Whether one more STUN request from there is answered."""
        return (self._checks if source in self.known else self._strange_checks).admits(time.monotonic())

    def data_received(self, data: bytes, component: int) -> None:
        """As in aioice, which also passes on what it cannot parse, which is no data here."""
        most = MOST_QUEUED + (MOST_ALERTS if data[0] == _ALERT else 0)
        is_refused = self._queue.qsize() >= most or not (self.is_up or self._handshake.admits(time.monotonic()))
        if is_refused or not 20 <= data[0] <= 63:
            self.refused += 1
            self.data_refused += self.is_up
            return
        for record in records(data):
            self._queue.put_nowait((record, component))

    async def recv(self) -> bytes:
        """As in aioice: the next datagram for DTLS, which processes it, without a pause, until it asks for another one.
        During the handshake it waits with a time limit, and so in a task of its own: others run in between."""
        if self._began:
            spent = time.thread_time() - self._began
            self._began = 0.0
            self._allowance.take(spent)
            self._slice += spent
        if self._slice > SLICE_S:
            self._slice = 0.0
            await asyncio.sleep(0)
        while not self._allowance.has(time.monotonic()):  # noqa: ASYNC110 - time alone fills it
            await asyncio.sleep(PAUSE_S)
        data = await super().recv()
        self._began = time.thread_time() if self.is_up else 0.0
        return data

    def check_incoming(self, message: Message, addr: Address, protocol: StunProtocol) -> None:
        """As in aioice: an authentic request, maybe from a new address."""
        if "PRIORITY" not in message.attributes or (addr not in self.known and not self._has_room()):
            self.refused += 1
            return
        super().check_incoming(message, addr, protocol)
        self._learn()

    def _add_remote_candidate(self, remote_candidate: Candidate, network_host: str) -> None:
        super()._add_remote_candidate(remote_candidate, network_host)
        self._learn()

    def _learn(self) -> None:
        if len(self.known) != len(self._remote_candidates):
            self.known = {(known._network_host, known.port) for known in self._remote_candidates}

    def _has_room(self) -> bool:
        """Whether one more address may be learnt. If need be, addresses that led nowhere are forgotten."""
        if len(self._remote_candidates) < MOST_REMOTE:
            return True
        used = list(self._nominated.values())
        self._check_list = [pair for pair in self._check_list if pair.task or pair in used]
        kept = [pair.remote_candidate for pair in self._check_list]
        self._remote_candidates = [one for one in self._remote_candidates if one in kept]
        self._learn()
        return len(self._remote_candidates) < MOST_REMOTE

    # --- beginning and end

    async def gather_candidates(self) -> None:
        """Raises NoPort."""
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
            opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                opened.setblocking(False)
                opened.bind((address, port))
                return (await loop.create_datagram_endpoint(partial(_Protocol, self, opened), sock=opened))[1]
            except OSError as error:
                opened.close()
                refusal = error
                if not taken(error):
                    break
        raise refusal

    @property
    def pair(self) -> CandidatePair | None:
        """The path to the peer that is in use: another one whenever ICE has found a better."""
        return self._nominated.get(1)

    async def get_event(self) -> ConnectionEvent | None:
        """As in aioice, whose reader would ask again without end where the connection was closed before it began."""
        return await super().get_event() or ConnectionClosed()

    def drop(self) -> None:
        """End whatever `close` has left: checks, sockets, waiting readers."""
        self._closing = self._check_list_done = True
        for task in (self._query_consent_task, *(pair.task for pair in self._check_list)):
            if task:
                task.cancel()
        for protocol in self._protocols:
            protocol.transport.abort()
        self._queue.put_nowait(None)
        if not self._closed:
            self._closed = True
            self._emit_event(ConnectionClosed())
        # In a circle with us are sockets, by their pairs, and tasks, by the frames of the error that ended them.
        self._query_consent_task = None
        for pair in self._check_list:
            pair.task = None
        for circle in (self._nominated, self._protocols, self._check_list):
            circle.clear()
