"""The attackers' process: `python -m tests.attacks.bench.attacker`, with an `ReplyOrder` in JSON on its standard input.

It gives way to every other process, so that what is measured beside it does not merely lack a processor. When it is
done it says in JSON what the PoP told it.
"""

import asyncio
import os
import sys
import time
from collections import Counter

import msgspec

from tests.attacks.bench.discovery import found
from tests.attacks.bench.sources import MANY, ONE, Sources, sending_from
from tests.attacks.target import Attack, Target

STRANGERS = "strangers"
"""Not an attack of its own: all that need no key at the same time, from 50 addresses, with 10 Mbit/s in all."""
STRANGERS_BITS = 10e6
GRACE_S = 30.0
"""An attack that takes so much longer than it was asked to is ended."""
KEPT = 20
"""Different answers that are told."""


class Order(msgspec.Struct, frozen=True):
    """What to do. `attack` is a name, or "strangers"."""

    attack: str
    seconds: float
    host: str
    port: int
    key: str = ""
    sip_port: int = 0
    pid: int = 0


class Said(msgspec.Struct, frozen=True):
    """What became of it."""

    told: dict[str, int]
    """What the PoP said, and how often."""
    errors: list[str] = []
    """An attack that fails has not attacked: its result says nothing."""
    sent_mbits: float = 0.0
    """Mbit/s that it sent, without headers."""


async def ordered(order: Order) -> Said:
    """Let this process do it, and no other thing: its sockets are not as they were before."""
    attacks = found()
    together = order.attack == STRANGERS
    chosen = [attack for attack in attacks.values() if attack.by_stranger] if together else [attacks[order.attack]]
    sources = Sources(MANY, moved=True, bits_per_second=STRANGERS_BITS) if together else Sources(ONE)
    told: Counter[str] = Counter()
    began = time.monotonic()
    with sending_from(sources):
        ends = await asyncio.gather(*(one(attack, order, told) for attack in chosen), return_exceptions=True)
    errors = [f"{attack.name}: {end!r}" for attack, end in zip(chosen, ends, strict=True) if end is not None]
    return Said(dict(told.most_common(KEPT)), errors, 8e-6 * sources.total / (time.monotonic() - began))


async def one(attack: Attack, order: Order, told: Counter[str]) -> None:
    """Raises what the attack raises, and TimeoutError where it does not end."""
    key = "" if attack.by_stranger else order.key
    target = Target(order.host, order.port, key, order.sip_port, order.pid, told=told)
    async with asyncio.timeout(order.seconds + GRACE_S):
        await attack.run(target, order.seconds)


async def attacked(order: Order) -> Said:
    """Have a process of its own do it; it ends with this context's task."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(order.seconds + 2 * GRACE_S):
            said, _ = await child.communicate(msgspec.json.encode(order))
        return msgspec.json.decode(said, type=Said)
    except (TimeoutError, msgspec.DecodeError):
        return Said({}, [f"{order.attack}: its process {'did not end' if child.returncode is None else 'failed'}"])
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


if __name__ == "__main__":
    os.nice(19)
    outcome = asyncio.run(ordered(msgspec.json.decode(sys.stdin.buffer.read(), type=Order)))
    sys.stdout.buffer.write(msgspec.json.encode(outcome))
