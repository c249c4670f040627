"""Sends to hosts that a SIP message names.

Whoever calls says where our BYE goes (Contact, Record-Route). So strangers choose the names, and their name servers may
never answer. Their lookups have threads of their own, apart from those of webhooks, model servers and providers'
commands. What is to be sent to a name waits for its lookup; the same datagram, sent again, waits once.
"""

import asyncio
import logging
import re
import socket
import time
from collections.abc import Callable
from functools import partial

from voicepipe.base.lookups import Answer, Limits, Lookups
from voicepipe.ingress.refusal_log import RefusalLog
from voicepipe.ingress.sip.transactions import Host

logger = logging.getLogger(__name__)

LIMITS = Limits(
    threads=4,  # One that hangs costs 5 to 20 s of a thread, and nothing else.
    line=64,  # What is too much is dropped, and its transaction sends it again.
    wait_s=32.0,  # The transaction is over by then (RFC 3261, 17.1.2.2).
    found_s=60.0,
    missing_s=10.0,  # So sending again means few lookups.
)
MOST_DATAGRAMS = 512
"""Datagrams that may wait, for all names together."""
_NAME = re.compile(r"[0-9a-z_][0-9a-z_.-]{0,252}")


class ResolvingSender:
    """Sends datagrams to hosts by name. `send(data, address)` takes an IPv4 address. Lives on the event loop; `close`
    it at the end."""

    def __init__(self, send: Callable[[bytes, Host], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._send_to = send
        self._lookups = Lookups("sip-names", LIMITS, clock)
        self._missing = RefusalLog(logger, "SIP hosts without an address")
        self._waiting: dict[str, dict[tuple[bytes, int], None]] = {}
        """Datagrams and their ports by the name that they wait for, in order."""

    def send(self, data: bytes, address: Host) -> None:
        """Send to a host by its name, as soon as its address is known. Dropped if it has none, or too many wait."""
        name, port = address[0].lower(), address[1]
        if not _NAME.fullmatch(name):
            logger.debug("%r is no host", address[0])
            return
        waiting = self._waiting.get(name)
        if waiting is None:
            answer = self._lookups.ask((name, socket.AF_INET, socket.SOCK_DGRAM, 0, 0))
            if answer.done():
                self._send(answer.result(), data, port)
                return
            waiting = self._waiting[name] = {}
            answer.add_done_callback(partial(self._answered, name))
        if sum(map(len, self._waiting.values())) < MOST_DATAGRAMS:
            waiting[data, port] = None

    def close(self) -> None:
        """Send nothing more. Lookups that hang go on by themselves."""
        self._lookups.close()
        self._waiting.clear()

    def _answered(self, name: str, asked: "asyncio.Future[Answer]") -> None:
        answer = asked.result()
        if isinstance(answer, OSError):
            self._missing.log(name, "%r has no address (%s)", name, answer)
        for data, port in self._waiting.pop(name, ()):  # Nothing, if it is closed.
            self._send(answer, data, port)

    def _send(self, answer: Answer, data: bytes, port: int) -> None:
        if not isinstance(answer, OSError):
            self._send_to(data, (str(answer[0][4][0]), port))
