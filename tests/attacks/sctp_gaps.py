"""An authenticated peer whose every second SCTP chunk is missing."""

from tests.attacks.rogue import calling, paced
from tests.attacks.sctp_forge import data, next_tsn, send
from tests.attacks.target import Attack, Target

CHUNKS = 14
"""Every 10 ms, each in a packet: 40 kB/s."""


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    async with calling(target) as placed:
        if placed is None:
            return
        peer, tsn = placed.transport, next_tsn(placed.transport) + 1
        async for _ in paced(seconds):
            for _ in range(CHUNKS):
                await send(peer, data(tsn, b"x", seq=tsn & 0xFFFF))
                tsn += 2


ATTACK = Attack("sctp_gaps", "SCTP chunks with a gap before each, 40 kB/s over a data channel", run)
