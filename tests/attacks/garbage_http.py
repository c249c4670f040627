"""10 Mbit/s of what is no HTTP, or is HTTP without end or costs much to parse, from 50 addresses."""

import asyncio
import random
import time

from tests.attacks.strangers import Streams, keeps_open
from tests.attacks.target import Attack, Target

CONNECTIONS = 50
BYTES_PER_S = 10_000_000 // 8
SEEDS = (
    b"\x00" * 64,
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"GET /%ff%fe%00 HTTP/1.1\r\nHost: [\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 50,
    b"A" * 70_000,
    b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000,
    b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a:\r\n" * 16_000 + b"\r\n",
)
ENDLESS = b"POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKS = b"1\r\nx\r\n" * 10_000
"""Said again and again by a third of them: a body whose parts are as small as can be, for what is answered at once."""


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    rng = random.Random(15)

    async def shouts(streams: Streams, until: float) -> None:
        reader, writer = streams
        endless = rng.random() < 1 / 3
        if endless:
            writer.write(ENDLESS)
        while time.monotonic() < until and not reader.at_eof():
            said = bytearray(CHUNKS if endless else rng.choice(SEEDS))
            if not endless and rng.random() < 0.5:
                said[rng.randrange(len(said))] = rng.randrange(256)
            writer.write(said)
            await writer.drain()
            await asyncio.sleep(len(said) * CONNECTIONS / BYTES_PER_S)

    await keeps_open(target, seconds, CONNECTIONS, shouts)


ATTACK = Attack("garbage_http", "10 Mbit/s of broken HTTP from 50 addresses", run, by_stranger=True)
