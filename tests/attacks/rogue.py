"""What attacks by WebRTC share: a call that is placed by the rules, the pace of what then breaks them, and the ports
that a stranger would have to find."""

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from latency_probes.webrtc import Placed, place
from tests.attacks.target import Target
from voicepipe.base.errors import ProbeError

PAUSE_S = 0.01
OPEN_S = 10.0


@asynccontextmanager
async def calling(target: Target) -> AsyncIterator[Placed | None]:
    """A call that is up, with its channel; None: the PoP refuses it, or ends it, which is told."""
    try:
        placed = await place(target.http, target.key, "", on_message=partial(_note, target))
    except ProbeError as error:
        target.told[str(error)[:60]] += 1
        await asyncio.sleep(0.2)
        yield None
        return
    try:
        async with asyncio.timeout(OPEN_S):
            while placed.transport.sctp.state != "connected" or placed.channel.readyState != "open":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        yield placed
    except (ConnectionError, TimeoutError) as error:
        target.told[type(error).__name__] += 1
    finally:
        await placed.hang_up()


def _note(target: Target, event: str) -> None:
    if '"error"' in event[:200]:
        target.told[json.loads(event).get("error", {}).get("code") or "error"] += 1


async def paced(seconds: float) -> AsyncIterator[int]:
    """0, 1, 2 ... every `PAUSE_S`."""
    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        yield number
        number += 1
        await asyncio.sleep(PAUSE_S)


def ports_of(target: Target) -> list[int]:
    """The UDP ports of the PoP's calls, which a stranger would have to find by trying all; empty: not known here."""
    try:
        links = [os.readlink(path) for path in Path(f"/proc/{target.pid}/fd").iterdir()]
        table = Path(f"/proc/{target.pid}/net/udp").read_text().splitlines()[1:]
    except OSError:
        return []
    sockets = {link[8:-1] for link in links if link.startswith("socket:[")}
    rows = (line.split() for line in table)
    found = (int(row[1].rpartition(":")[2], 16) for row in rows if row[9] in sockets)
    return [port for port in found if port != target.sip_port and port not in target.spared]


async def sprayed(target: Target, seconds: float, datagrams: list[bytes], each: int = 10) -> None:
    """Every datagram to every port of the PoP's calls, over and over: `each` every `PAUSE_S`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.setblocking(False)
        ports, sent = list[int](), 0
        async for tick in paced(seconds):
            if tick % 50 == 0:
                ports = ports_of(target) or list(range(32768, 61000, 7))
            for _ in range(each):
                try:
                    stranger.sendto(datagrams[sent % len(datagrams)], (target.host, ports[sent % len(ports)]))
                except OSError:
                    pass
                sent += 1
