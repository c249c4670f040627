"""Webhooks of Twilio and Telnyx that neither has signed, small and large, and WebSockets for their streams."""

import asyncio
import secrets
import time
from itertools import count

from tests.attacks.connections import one_after_another
from tests.attacks.target import Attack, Target

CONNECTIONS = 8
PATHS = "/twilio/voice", "/telnyx/voice", "/twilio/after"
BODIES = b"CallSid=CA1&From=%2B1&To=%2B2", b"[" * 100_000, b"a=b&" * 50_000, b'{"data":' * 20_000
SIGNED = "X-Twilio-Signature: x\r\ntelnyx-signature-ed25519: eA==\r\ntelnyx-timestamp: {now}\r\n"


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    until = time.monotonic() + seconds
    await asyncio.gather(*(asks(target, until, number) for number in range(CONNECTIONS)))


async def asks(target: Target, until: float, first: int) -> None:
    """One request a connection."""
    numbers = count(first + 1)

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request(target, next(numbers)))
        async with asyncio.timeout(10):
            target.told[(await reader.readline())[:12].decode("latin-1")] += 1

    await one_after_another(target, until, once)


def request(target: Target, number: int) -> bytes:
    """A webhook; every fourth a stream."""
    signed = SIGNED.format(now=int(time.time()))
    host = f"Host: {target.host}:{target.port}\r\n{signed}"
    if number % 4 == 0:
        key = secrets.token_hex(8)
        upgrade = (
            f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
        )
        path = ("/twilio/stream", "/telnyx/stream")[number // 4 % 2]
        return f"GET {path} HTTP/1.1\r\n{host}{upgrade}x-telnyx-streaming-auth-token: x\r\n\r\n".encode()
    body = BODIES[number % len(BODIES)]
    head = f"POST {PATHS[number % len(PATHS)]} HTTP/1.1\r\n{host}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


ATTACK = Attack("phone_webhooks", "webhooks and streams that Twilio and Telnyx have not signed", run, by_stranger=True)
