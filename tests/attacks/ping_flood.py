"""Three WebSocket callers that send pings (some: pongs, empty fragments) as fast as they can, and read nothing."""

import asyncio
import time
from itertools import repeat

from tests.attacks.connections import one_after_another
from tests.attacks.target import Attack, Target

PING, PONG, FRAGMENT = b"\x89\x80\0\0\0\0", b"\x8a\x80\0\0\0\0", b"\x00\x80\0\0\0\0"
"""Masked with zeros, empty."""
BEGIN = b"\x01\x80\0\0\0\0"
"""The first fragment of a text that never ends."""
FULL_PING = b"\x89\xfd\0\0\0\0" + b"a" * 125
SHAKE = (
    "GET /v1/realtime?model=front-desk HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{key}\r\n"
)
FLOODS = (b"", PING * 1000), (b"", FULL_PING * 50), (BEGIN, FRAGMENT * 1000)
"""What is said first, and what again and again."""


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    until = time.monotonic() + seconds
    await asyncio.gather(*(floods(target, until, *said) for said in FLOODS))


async def floods(target: Target, until: float, first: bytes, again: bytes) -> None:
    """One caller after another: the server may end any of them."""
    key = f"Authorization: Bearer {target.key}\r\n" if target.key else ""
    shake = SHAKE.format(host=target.host, port=target.port, key=key).encode()

    async def caller(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(shake)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(first)
        for said in repeat(again):
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                writer.write(said)
                await writer.drain()

    await one_after_another(target, until, caller, limit=1024)


ATTACK = Attack("ping_flood", "three callers that send pings and fragments without end and read nothing", run)
