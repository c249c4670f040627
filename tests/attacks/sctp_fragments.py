"""An authenticated peer that begins messages and ends none, and messages behind one that never comes."""

from tests.attacks.rogue import calling, paced
from tests.attacks.sctp_forge import FIRST, WHOLE, data, next_tsn, send
from tests.attacks.target import Attack, Target

BUNDLED = 40


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    for seq in (1, 0):  # first what waits for another message, then what waits for its own end
        async with calling(target) as placed:
            if placed is None:
                continue
            peer, tsn = placed.transport, next_tsn(placed.transport)
            async for tick in paced(seconds / 2):
                size, count = (1, BUNDLED) if tick % 2 else (1000, 1)
                flags = WHOLE if seq else 0
                chunks = [
                    data(tsn + n, b"x" * size, FIRST if not seq and tick == n == 0 else flags, seq=seq * 9)
                    for n in range(count)
                ]
                await send(peer, *chunks)
                tsn += count


ATTACK = Attack("sctp_fragments", "messages over a data channel that are begun and never ended", run)
