"""Where hosts are that a SIP message names: looked up so that nobody else has to wait for it.

Whoever calls says where our BYE goes (Contact, Record-Route). So strangers choose the names, and their name servers may
never answer. The event loop looks names up in a few threads, which webhooks, model servers and providers' commands need
as well: a few calls could stall them all. Names of SIP have threads of their own instead.

- A name is looked up by one thread at a time. What is to be sent there waits for it; the same datagram, sent again,
  waits once.
- What was found holds for a minute. That nothing was found holds for 10 s, so sending again means few lookups.
- A lookup cannot be ended. At most `THREADS` go on at a time, and only so many names wait for a thread, and only so
  long.
"""

import asyncio
import logging
import re
import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from voicepipe.ingress.sip.transactions import Host

logger = logging.getLogger(__name__)

THREADS = 4
"""Lookups at a time. One that hangs costs 5 to 20 s of a thread, and nothing else."""
FOUND_S, MISSING_S = 60.0, 10.0
"""An address is used for so long; so long a name without one is not looked up again."""
WAIT_S = 32.0
"""Who waits longer for a thread is forgotten: the transaction is over by then (RFC 3261, 17.1.2.2)."""
MOST_NAMES, MOST_DATAGRAMS = 64, 512
"""That wait. What is too much is dropped, and its transaction sends it again."""
MOST_KNOWN = 1024
"""Names whose address is remembered; the one looked up longest ago is forgotten first."""
_NAME = re.compile(r"[0-9a-z_][0-9a-z_.-]{0,252}")


@dataclass(slots=True)
class _Asked:
    """A name that is looked up, or is to be."""

    since: float
    waiting: dict[tuple[bytes, int], None] = field(default_factory=dict)
    """Datagrams and their ports, in order."""


class Names:
    """`send(data, address)` takes an IPv4 address. Lives on the event loop; `close` it at the end."""

    def __init__(self, send: Callable[[bytes, Host], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._send_to = send
        self._clock = clock
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()
        """The address of a name, empty if it has none, and until when that holds."""
        self._asked: dict[str, _Asked] = {}
        self._line: deque[str] = deque()
        """Names that wait for a thread."""
        self._waiting = self._running = 0
        """Datagrams; lookups."""

    def send(self, data: bytes, address: Host) -> None:
        """To a host by its name, as soon as it is known. Dropped if it has no address, or too much waits."""
        name, port = address[0].lower(), address[1]
        if not _NAME.fullmatch(name):
            logger.debug("%r is no host", address[0])
            return
        found, until = self._known.get(name, ("", 0.0))
        if self._clock() >= until:
            self._ask(name, data, port)
        elif found:
            self._send_to(data, (found, port))

    def close(self) -> None:
        """Send nothing more. Lookups that hang are left to themselves."""
        self._asked.clear()
        self._line.clear()
        self._waiting = 0

    def _ask(self, name: str, data: bytes, port: int) -> None:
        asked = self._asked.get(name)
        if self._waiting >= MOST_DATAGRAMS or (asked is None and len(self._line) >= MOST_NAMES):
            return
        if asked is None:
            asked = self._asked[name] = _Asked(self._clock())
            self._line.append(name)
        if (data, port) not in asked.waiting:
            asked.waiting[data, port] = None
            self._waiting += 1
        self._begin()

    def _begin(self) -> None:
        """Give free threads to those who have waited longest."""
        while self._line and self._running < THREADS:
            name = self._line.popleft()
            if self._clock() - self._asked[name].since > WAIT_S:
                self._over(name)
                continue
            # A daemon: a lookup that hangs must not keep the process from ending.
            job = threading.Thread(
                target=self._look_up, args=(asyncio.get_running_loop(), name), name="sip-names", daemon=True
            )
            try:
                job.start()
            except RuntimeError as error:  # The system has no thread for us.
                logger.error("%r is not looked up: %s", name, error)
                self._over(name)
            else:
                self._running += 1

    def _look_up(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        """In a thread."""
        try:
            address = str(socket.getaddrinfo(name, None, family=socket.AF_INET, type=socket.SOCK_DGRAM)[0][4][0])
        except (OSError, UnicodeError) as error:  # UnicodeError: it is no name at all.
            logger.warning("%r has no address (%s)", name, error)
            address = ""
        with suppress(RuntimeError):  # The loop is closed: the lookup hung up to now.
            loop.call_soon_threadsafe(self._found, name, address)

    def _found(self, name: str, address: str) -> None:
        self._running -= 1
        self._known[name] = address, self._clock() + (FOUND_S if address else MISSING_S)
        self._known.move_to_end(name)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        for data, port in self._over(name):
            if address:
                self._send_to(data, (address, port))
        self._begin()

    def _over(self, name: str) -> tuple[tuple[bytes, int], ...]:
        """Nobody waits for it any longer; what did."""
        asked = self._asked.pop(name, None)
        if asked is None:  # It is closed.
            return ()
        self._waiting -= len(asked.waiting)
        return tuple(asked.waiting)
