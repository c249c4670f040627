"""Datagrams at the SIP port that are no SIP, and datagrams of 8 kB and more that are made to cost a parser much."""

import random
from functools import cache

from tests.attacks.sip_messages import STRANGERS, message, pour
from tests.attacks.target import Attack, Target

PER_S = 1000
STUN = b"\0\1\0\0\x21\x12\xa4\x42" + bytes(12) + bytes(16)
RTP = b"\x80\0\0\1" + bytes(168)
START = b"INVITE sip:front@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.2;branch=z9hG4bK"


@cache
def kinds() -> list[bytes]:
    """Of every kind some."""
    rng = random.Random(7)
    return [
        b"\r\n" * 20, STUN, RTP, rng.randbytes(300), START + rng.randbytes(300), START + rng.randbytes(1300), *costly()
    ]  # fmt: skip


def made(host: str, number: int) -> bytes:
    """The kinds in turn, beginning elsewhere for each host."""
    return kinds()[(number + hash(host)) % len(kinds())]


def costly(host: str = STRANGERS[0]) -> list[bytes]:
    """By parameters, by commas, by lines and by folding."""
    parameters = "".join(f";{n:x}" for n in range(10_000))
    return [
        message("OPTIONS", host, [f"Record-Route: <sip:a>{parameters}"]),
        message("OPTIONS", host, ["Record-Route: <sip:a>" + ",<sip:a>" * 6000]),
        message("OPTIONS", host, ["Via: " + "SIP/2.0/UDP a," * 4000]),
        message("OPTIONS", host, ["a:"] * 10_000),
        message("OPTIONS", host, ["Subject: x" + "\r\n " * 16_000]),
    ]


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await pour(target, seconds, STRANGERS, PER_S, made)


ATTACK = Attack(
    "sip_junk", f"{PER_S} junk datagrams a second to the SIP port from 200 addresses", run, by_stranger=True
)
