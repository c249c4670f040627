"""A long conversation of long items, and then bursts of replies that are asked for and cancelled at once."""

from tests.attacks.clients import Client, calling, message
from tests.attacks.target import Attack, Target

CALLS, ITEMS, PAIRS = 2, 40, 65
LENGTHS = (100_000, 30_000, 12_000)
"""Bytes of an item: more than one may have, and as much as a conversation has room for."""


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await calling(target, seconds, CALLS, bursts)


async def bursts(client: Client) -> None:
    for length in LENGTHS:
        for n in range(ITEMS):
            await client.send("conversation.item.create", item=message(f"word{n} " * (length // 7)))
    while not client.over:
        for _ in range(PAIRS):
            await client.send("response.create")
            await client.send("response.cancel")


ATTACK = Attack("history_burst", "40 items of 100 kB, then bursts of response.create and response.cancel", run)
