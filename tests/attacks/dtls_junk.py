"""DTLS records and SRTP packets of somebody else, to the ports of other people's calls."""

import random

from tests.attacks.rogue import sprayed
from tests.attacks.target import Attack, Target


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await sprayed(
        target,
        seconds,
        [
            b"\x16\xfe\xfd" + bytes(8) + b"\0\x40\1" + random.randbytes(63),
            (b"\x17\xfe\xfd" + bytes(8) + b"\0\x10" + random.randbytes(16)) * 40,
            b"\x2c\0\1\0\x20" + random.randbytes(32),
            b"\x80\x6f" + random.randbytes(170),
            b"\x80\xc8" + random.randbytes(60),
            b"\x40" + random.randbytes(100),
        ],
    )


ATTACK = Attack("dtls_junk", "1,000 DTLS records and SRTP packets a second to the ports of calls, by a stranger", run,
                by_stranger=True)  # fmt: skip
