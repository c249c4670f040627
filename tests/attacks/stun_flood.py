"""STUN of somebody who knows neither user name nor password, to the ports of other people's calls."""

import random
import struct

from tests.attacks.rogue import sprayed
from tests.attacks.target import Attack, Target


def message(kind: int, *attributes: tuple[int, bytes]) -> bytes:
    body = b"".join(struct.pack("!HH", name, len(value)) + value + bytes(-len(value) % 4) for name, value in attributes)
    return struct.pack("!HH", kind, len(body)) + b"\x21\x12\xa4\x42" + random.randbytes(12) + body


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    name = (6, b"user:name")
    await sprayed(
        target,
        seconds,
        [
            message(1, name, (0x24, bytes(4)), (0x8, bytes(20)), (0x25, b"")),
            message(1, name, *[(0x14, b"x")] * 150),
            message(1, name, (0x24, b"xx")),  # whose length aioice does not look at
            message(0x0101, (0x20, bytes(8))),
            message(0x0011),
            message(3, (0x19, bytes(4))),
            b"\0" + random.randbytes(500),
        ],
    )


ATTACK = Attack(
    "stun_flood", "1,000 STUN messages a second to the ports of calls, by a stranger", run, by_stranger=True
)
