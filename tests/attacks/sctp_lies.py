"""An authenticated peer whose SCTP packets say what is not so: each stopped a PoP that believed them."""

import struct

from tests.attacks.rogue import calling, paced
from tests.attacks.sctp_forge import chunk, data, next_tsn, sack, send
from tests.attacks.target import Attack, Target


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    async with calling(target) as placed:
        if placed is None:
            return
        peer = placed.transport
        acked = (peer.sctp._last_received_tsn or 0) % 2**32
        lies = [
            ([chunk(4, b"\0\1\0\0")], None),  # a parameter without an end
            ([sack(acked, [(1, 65535)] * 280)], None),  # eighteen million chunks
            ([chunk(4, b"")] * 300, None),  # as many answers
            ([chunk(1, struct.pack("!LLHHL", 1, 1 << 20, 9, 9, 5))], 0),  # an association that begins anew
            ([chunk(192, struct.pack("!L", next_tsn(peer) + 9) + bytes(1000))], None),  # 250 streams
            ([chunk(130, (b"\0\x0d\0\x10" + bytes(12)) * 70)], None),
            ([data(next_tsn(peer) + n, b"\x03" + bytes(11), stream=n, kind=50) for n in range(40)], None),
        ]
        async for tick in paced(seconds):
            chunks, tag = lies[tick % len(lies)]
            await send(peer, *chunks, tag=tag)


ATTACK = Attack("sctp_lies", "SCTP packets with lengths, counts and acknowledgements that are not true", run)
