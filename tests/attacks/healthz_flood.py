"""GET /healthz over and over on a few connections that are kept open."""

import asyncio
import time

from tests.attacks.connections import PAUSE_S, one_after_another
from tests.attacks.target import Attack, Target

CONNECTIONS = 8


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    until = time.monotonic() + seconds
    await asyncio.gather(*(asks(target, until) for _ in range(CONNECTIONS)))


async def asks(target: Target, until: float) -> None:
    """One connection after another: the server may close any of them."""
    request = f"GET /healthz HTTP/1.1\r\nHost: {target.host}:{target.port}\r\n\r\n".encode()

    async def over_and_over(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while time.monotonic() < until:
            writer.write(request)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            target.told[f"HTTP {head.split()[1].decode()}"] += 1
            lines = head.lower().split(b"\r\n")
            length = next((line for line in lines if line.startswith(b"content-length:")), b"")
            if not length:  # It is refused, and the connection closed.
                return await asyncio.sleep(PAUSE_S)
            await asyncio.wait_for(reader.readexactly(int(length[15:])), 10)

    await one_after_another(target, until, over_and_over)


ATTACK = Attack("healthz_flood", "GET /healthz as fast as it is answered, on 8 connections", run, by_stranger=True)
