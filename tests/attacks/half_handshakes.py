"""WebSocket handshakes that stop in the middle, and some that are complete and wrong."""

import asyncio
import time
from itertools import cycle

from tests.attacks.strangers import Streams, answered, keeps_open
from tests.attacks.target import Attack, Target

CONNECTIONS = 300
UPGRADE = b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
BEGINNINGS = cycle(
    [
        UPGRADE,
        UPGRADE + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ",
        UPGRADE + b"\r\n",
        UPGRADE + b"Sec-WebSocket-Version: 99\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # the beginning of a TLS handshake
    ]
)


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await keeps_open(target, seconds, CONNECTIONS, begins)


async def begins(streams: Streams, until: float) -> None:
    """Say how it begins, and wait; who was answered comes back in a second."""
    streams[1].write(next(BEGINNINGS))
    await answered(streams[0], until)
    await asyncio.sleep(min(1.0, max(0.0, until - time.monotonic())))


ATTACK = Attack("half_handshakes", "300 WebSocket handshakes that stop half-way", run, by_stranger=True)
