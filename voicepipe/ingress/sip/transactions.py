"""sippy's transactions (RFC 3261, 17) as ordinary code on our event loop.

sippy comes with an event loop and threads of its own. Its transactions need neither: they are given a socket and timers
of asyncio's here. All that is used of sippy and not promised by it stands in this file.
"""

import asyncio
import logging
import math
import re
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import sippy.SipTransactionManager
import sippy.Time.Timeout
from sippy.SipConf import SipConf
from sippy.SipTransactionManager import SipTransactionManager

from voicepipe.base.token_bucket import Bucket, Rate
from voicepipe.ingress.sip.datagram_check import DatagramCheck
from voicepipe.ingress.sip.kept_messages import KeptRequest, KeptResponse
from voicepipe.ingress.sip.message import printable

logger = logging.getLogger(__name__)

Host = tuple[str, int]
Receive = Callable[[bytes, Host], bool]
"""Takes a datagram; returns whether it was more than junk."""
Send = Callable[[bytes, Host], None]
PORTION_S, PAUSE_S = 0.001, 0.020
"""Seconds for which datagrams are read before other work has its turn; and seconds that they wait at least once
`READING` is used up."""
TOGETHER = 4
"""Datagrams of junk between looks at the clock, which take as long as one of them."""
READING = Rate(20, 500)
"""Milliseconds of the event loop's time, at once and a second. Time beyond that is owed in full: after one datagram
that took a second the socket rests for a second."""
MOST_BYTES = 65_536
WAITING_BYTES = 1 << 20
"""Bytes of datagrams that may wait in the socket, where the system allows it: a burst of calls waits there, and is not
lost."""
MOST_DOUBTFUL = 256
"""Most INVITEs that were refused or given up and whose ACK is waited for, and BYEs of calls that were never
acknowledged. sippy would keep an INVITE for 32 s, in 13 kB, and a BYE for 64 s."""
CACHED_BYTES, ENTRY_BYTES = 4_000_000, 900
"""Bytes of answers that are remembered for messages that come again, half of the limit; and bytes that each takes
besides its text. Some 2,500 answers of the usual size; sippy would keep all of the last 32 to 64 s."""
_SECRETS = re.compile(r"(inline:|response=|authorization: )[^\r\n]*", re.IGNORECASE)


class SippyTimer:
    """A timer of sippy's, run by asyncio."""

    def __init__(self, callback: Callable[..., None], seconds: float, ticks: int, params: tuple[Any, ...]) -> None:
        self._callback, self._seconds, self._ticks, self._params = callback, seconds, ticks, params
        self._handle: asyncio.TimerHandle | None = None

    def go(self) -> None:
        self._handle = asyncio.get_running_loop().call_later(self._seconds, self._due)

    def cancel(self) -> None:
        if self._handle:
            self._handle.cancel()

    def _due(self) -> None:
        self._ticks -= 1
        if self._ticks:  # -1: for ever
            self.go()
        self._callback(*self._params)


class SippyTimers:
    """Replaces sippy's event dispatcher."""

    def regTimer(self, callback: Callable[..., None], seconds: float, ticks: int, at: bool, *params: Any) -> SippyTimer:
        assert not at, "transactions know no times of day"
        return SippyTimer(callback, seconds, ticks, params)


class _Log:
    """Logs every message at DEBUG, without secrets that open a call or its sound."""

    def write(self, *said: str, **_: object) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            text = _SECRETS.sub(r"\1...", "".join(said))
            # Indented, so that nothing that a stranger writes looks like a line of the log.
            logger.debug("%s", "\n    ".join(printable(line) for line in text.splitlines()))


def _unparsed(what: str, extra: str = "", **_: object) -> None:
    """Replaces what sippy prints while it handles an exception, which is then raised to its caller."""
    raise


def _printed(*said: object) -> None:
    """Replaces `print`: a stranger's nonsense is not written to our terminal."""
    logger.debug("%s", " ".join(str(part) for part in said))


def prepare() -> None:
    """Set up sippy's modules, and replace what they would print or start."""
    sippy.Time.Timeout.ED2 = SippyTimers()
    sippy.SipTransactionManager.dump_exception = _unparsed
    for name, module in tuple(sys.modules.items()):
        if name.startswith("sippy."):
            module.print = _printed  # type: ignore[attr-defined]
    sippy.SipTransactionManager.SipRequest = KeptRequest
    sippy.SipTransactionManager.SipResponse = KeptResponse
    SipConf.my_uaname = "voicepipe"


class UdpSocket:
    """A UDP socket with the interface of sippy's server. It is read in small portions, so that a flood takes turns with
    all other work of the event loop, and no more than half of its time."""

    transport = "udp"

    def __init__(self, received: Receive, send_to_name: Send) -> None:
        self.uopts = self
        self.address: Host = "", 0
        """Our address, as in our requests."""
        self._received, self._send_to_name = received, send_to_name
        self._socket: socket.socket | None = None
        self._time = Bucket(READING, owes=math.inf)
        self._resume: asyncio.TimerHandle | None = None
        self._paused = True

    def open(self, bind: Host, taken_over: socket.socket | None = None) -> None:
        """Have the socket, or `taken_over` if another process has bound it. Nothing is read before `resume`. Raises
        OSError."""
        self._socket = taken_over or _bound(bind)
        self.address = self._socket.getsockname()

    def pause(self) -> socket.socket:
        """Read nothing more, until `resume`: another process may. Returns the socket, at which this one still
        sends."""
        assert self._socket
        self._paused = True
        if self._resume:
            self._resume.cancel()
        asyncio.get_running_loop().remove_reader(self._socket)
        return self._socket

    def resume(self) -> None:
        """Read what comes, and what has come since the socket was open."""
        self._paused = False
        if self._socket:
            asyncio.get_running_loop().add_reader(self._socket, self._readable)

    def _readable(self) -> None:
        """Read a portion. The thread's own time counts, so that reading does not stop because the machine is busy."""
        began = time.thread_time()
        self._time.has(time.monotonic())  # What came in before is at most a burst, and pays for no more than that.
        try:
            while time.thread_time() - began < PORTION_S and self._read():
                pass
        finally:
            self._time.take((time.thread_time() - began) * 1000)
            self._rest()

    def _rest(self) -> None:
        """Pause until the time that was used is paid. Meanwhile more came in, so that comes to as long again at
        most."""
        now = time.monotonic()
        if self._socket and not self._paused and not self._time.has(now):
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._socket)
            wait_s = max(PAUSE_S, self._time.wait_s(now))
            self._resume = loop.call_later(wait_s, loop.add_reader, self._socket, self._readable)

    def _read(self) -> bool:
        """Read `TOGETHER` datagrams, or up to the first that is more than junk; returns whether there may be
        another."""
        for _ in range(TOGETHER):
            if self._socket is None or self._paused:
                return False
            try:
                data, address = self._socket.recvfrom(MOST_BYTES)
            except OSError:  # Nothing more, or an error for one that we have sent: transactions time out.
                return False
            if self._received(data, address):
                break
        return self._socket is not None

    def isWildCard(self) -> bool:
        return False

    def getSIPaddr(self) -> tuple[Host, str]:
        return self.address, "udp"

    def addr2str(self, address: Host) -> str:
        return f"{address[0]}:{address[1]}"

    def send_to(self, data: str | bytes, address: Host) -> None:
        raw = data if isinstance(data, bytes) else data.encode()
        try:
            socket.inet_pton(socket.AF_INET, address[0])
        except (OSError, ValueError):  # ValueError: there is a NUL in it
            self._send_to_name(raw, address)
        else:
            self.send(raw, address)

    def send(self, data: bytes, address: Host) -> None:
        if self._socket:
            try:
                self._socket.sendto(data, address)
            except (OSError, OverflowError, ValueError):  # What a Via names may be no address and no port.
                logger.debug("nothing can be sent to %s:%s", *address, exc_info=True)

    def close(self) -> None:
        """Safe to call twice."""
        if self._resume:
            self._resume.cancel()
        if self._socket:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def shutdown(self) -> None:
        """sippy tries a port by opening and closing it; ours is open."""


def _bound(bind: Host) -> socket.socket:
    """Raises OSError."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        bound.setblocking(False)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WAITING_BYTES)
        bound.bind(bind)
    except OSError:
        bound.close()
        raise
    return bound


class _Answers(dict[bytes, Any]):
    """sippy's cache: the answers by the digest of their message. `bytes`: their size, nearly."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __setitem__(self, digest: bytes, answer: Any) -> None:
        host = answer.address[0] if answer.address else ""
        self.bytes += ENTRY_BYTES + sys.getsizeof(answer.data) + sys.getsizeof(host)
        super().__setitem__(digest, answer)


class _Doubtful:
    """Transactions whose far ends may not exist. Where there are too many, one of the commonest kind is forgotten, of
    the host that has most of these: a flood of one kind, or from one address, costs others no repetition."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, deque[Any]]] = {}
        """Transactions by kind and host, the oldest first. Most were answered."""
        self._number = 0

    def add(self, kind: str, transaction: Any) -> Any | None:
        """Add a transaction; returns the one that is to be forgotten for it."""
        hosts = self._kinds.setdefault(kind, {})
        hosts.setdefault(transaction.address[0], deque()).append(transaction)
        self._number += 1
        return self._taken() if self._number > MOST_DOUBTFUL else None

    def _taken(self) -> Any:
        hosts = max(self._kinds.values(), key=lambda hosts: sum(map(len, hosts.values())))
        host = max(hosts, key=lambda host: len(hosts[host]))
        oldest = hosts[host].popleft()
        if not hosts[host]:
            del hosts[host]
        self._number -= 1
        return oldest


class Transactions(SipTransactionManager):  # type: ignore[misc]
    """The SIP transactions (RFC 3261, 17) of one stack, on its socket."""

    def __init__(self, server: UdpSocket, on_request: Callable[[Any, Any], Any]) -> None:
        self.model_udp_server = (lambda config, options: server), (lambda address, handle: _SippyOptions())
        config = {"_sip_address": server.address[0], "_sip_port": server.address[1], "_sip_logger": _Log()}
        super().__init__(config, on_request)
        self.l1rcache = _Answers()
        self._doubtful = _Doubtful()

    def handleIncoming(self, data: str, source: Any, server: UdpSocket, now: Any) -> None:
        """As in sippy, which purges its answers every 32 s only, however many there are. Raises SipError."""
        if self.l1rcache.bytes > CACHED_BYTES:
            self.rCachePurge()
        super().handleIncoming(data, source, server, now)

    def rCachePurge(self) -> None:
        """Forget older answers; those since the last time are kept."""
        super().rCachePurge()
        self.l1rcache = _Answers()

    def doCancel(self, t: Any, rtime: Any = None, req: Any = None) -> None:
        """Cancel an INVITE. sippy sends 487 by itself, to a CANCEL and when an INVITE expires: one more refusal whose
        ACK may never come."""
        super().doCancel(t, rtime, req)
        if t.needack:
            self.doubt("given up", t)

    def incomingRequest(self, msg: Any, checksum: bytes, tids: Any, server: UdpSocket) -> None:
        """As in sippy."""
        via = msg.getHFBody("via")
        if "received" in via.params:  # If its sender wrote that, our answers would go to whom they please.
            via.params["received"] = msg.getSource()[0]
        super().incomingRequest(msg, checksum, tids, server)

    def expects(self, seen: DatagramCheck) -> bool:
        """Whether a message belongs to a transaction in progress, by what only its two ends know."""
        number, method = seen.cseq
        if not seen.method:
            return (seen.call_id, seen.from_tag, number, method, seen.branch) in self.tclient
        last = seen.to_tag if seen.method == "ACK" else seen.branch
        return bool(last) and (seen.call_id, seen.from_tag or None, number, last) in self.tserver

    def call_ids(self) -> set[str]:
        """The Call-IDs of all transactions in progress."""
        return {str(tid[0]) for tid in (*self.tserver, *self.tclient)}

    def doubt(self, kind: str, transaction: Any) -> None:
        """The far end may not exist: the transaction is kept unless there are too many, above all of this kind."""
        if forgotten := self._doubtful.add(kind, transaction):
            self.forget(forgotten)

    def not_again(self, transaction: Any) -> None:
        """Do not send the final response again before the INVITE comes again."""
        if transaction.teA:
            transaction.teA.cancel()

    def forget(self, transaction: Any) -> None:
        """Forget a transaction: nothing is sent again, and an ACK no longer belongs to it. Safe for one that has
        ended."""
        for those in (self.tserver, self.tclient):  # Theirs differ in length.
            those.pop(transaction.tid, None)
        _stop(transaction)
        transaction.cleanup()

    def shutdown(self) -> None:
        for transaction in (*self.tserver.values(), *self.tclient.values()):
            _stop(transaction)
        super().shutdown()


def _stop(transaction: Any) -> None:
    """Cancel a transaction's timers."""
    for name in "ABCDEFG":
        if timer := getattr(transaction, f"te{name}", None):
            timer.cancel()


class _SippyOptions:
    """The options that sippy sets, without effect."""

    flags = 0
