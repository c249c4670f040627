"""SIP messages by the thousand, from as many of this machine's addresses as one wants: what attacks on phones share."""

import asyncio
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tests.attacks.target import Target

STEP_S = 0.01
STRANGERS = tuple(f"127.88.{last // 100}.{last % 100 + 1}" for last in range(200))
Make = Callable[[str, int], bytes]
"""A datagram from this host, which is its n-th."""


def message(method: str, host: str, headers: Sequence[str] = (), body: str = "") -> bytes:
    """A request that looks as it should, in a transaction of its own."""
    name = secrets.token_hex(6)
    lines = [
        f"{method} sip:front@127.0.0.1 SIP/2.0",
        f"Via: SIP/2.0/UDP {host}:5060;branch=z9hG4bK{name};rport",
        "Max-Forwards: 70",
        f"From: <sip:eve@{host}>;tag={name}",
        "To: <sip:front@127.0.0.1>",
        f"Call-ID: {name}",
        f"CSeq: 1 {method}",
        f"Contact: <sip:eve@{host}>",
        *(["Content-Type: application/sdp"] if body else []),
        *headers,
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", body]).encode()


def invite(host: str) -> bytes:
    """One with an offer that can be taken."""
    offer = f"v=0\r\no=eve 1 1 IN IP4 {host}\r\ns=-\r\nc=IN IP4 {host}\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n"
    return message("INVITE", host, body=offer)


@contextmanager
def sockets(hosts: Sequence[str]) -> Iterator[list[socket.socket]]:
    """One a host."""
    with ExitStack() as opened:
        made = []
        for host in hosts:
            made.append(opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
            made[-1].setblocking(False)
            made[-1].bind((host, 0))
        yield made


async def pour(target: Target, seconds: float, hosts: Sequence[str], per_s: float, make: Make) -> None:
    """Datagrams at this rate, the hosts in turn; what comes back is counted by its status."""
    if not target.sip_port:
        return
    server, began, sent = (target.host, target.sip_port), time.monotonic(), 0
    with sockets(hosts) as made:
        while (passed := time.monotonic() - began) < seconds:
            late = passed * per_s - sent
            for _ in range(int(min(late, 2 * per_s * STEP_S))):  # What could not be sent in time is not sent later.
                at = sent % len(hosts)
                try:
                    made[at].sendto(make(hosts[at], sent // len(hosts)), server)
                except OSError:
                    target.told["not sent"] += 1
                sent += 1
            sent = max(sent, int(passed * per_s))
            for one in made:
                _count(target, one)
            await asyncio.sleep(STEP_S)


def _count(target: Target, one: socket.socket) -> None:
    while True:
        try:
            said = one.recv(65_536)
        except OSError:
            return
        target.told[said.split(b"\r\n", 1)[0][:16].decode("latin-1")] += 1
