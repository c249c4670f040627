"""GET /healthz over and over on a few connections that are kept open."""

import asyncio
import time

from tests.attacks.target import Attack, Target

CONNECTIONS = 8


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    until = time.monotonic() + seconds
    await asyncio.gather(*(asks(target, until) for _ in range(CONNECTIONS)))


async def asks(target: Target, until: float) -> None:
    """One connection after another: the server may close any of them."""
    request = f"GET /healthz HTTP/1.1\r\nHost: {target.host}:{target.port}\r\n\r\n".encode()
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection(target.host, target.port)
        except OSError:
            target.told["not connected"] += 1
            await asyncio.sleep(0.1)
            continue
        try:
            while time.monotonic() < until:
                writer.write(request)
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
                target.told[f"HTTP {head.split()[1].decode()}"] += 1
                length = next(
                    (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b""
                )
                if not length:  # It is refused, and the connection closed.
                    await asyncio.sleep(0.1)
                    break
                await asyncio.wait_for(reader.readexactly(int(length[15:])), 10)
        except (OSError, EOFError, TimeoutError):
            target.told["closed"] += 1
            await asyncio.sleep(0.1)
        finally:
            writer.close()


ATTACK = Attack("healthz_flood", "GET /healthz as fast as it is answered, on 8 connections", run, by_stranger=True)
