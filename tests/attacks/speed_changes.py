"""A new `speed` all the time: what was made ahead for the one before is of no use to anybody."""

import asyncio
import itertools

from tests.attacks.clients import Client, calling
from tests.attacks.target import Attack, Target

CALLS = 4
PAUSE_S = 0.002


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await calling(target, seconds, CALLS, changes)


async def changes(client: Client) -> None:
    for n in itertools.count():
        if client.over:
            return
        output = {"speed": 0.5 + n % 1000 / 1000}
        await client.send("session.update", session={"type": "realtime", "audio": {"output": output}})
        await asyncio.sleep(PAUSE_S)


ATTACK = Attack("speed_changes", "session.update with another speed, 500 a second on each of 4 calls", run)
