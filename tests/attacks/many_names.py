"""A client's tool with thousands of parameters, which the embedded language engine is to fill in."""

import asyncio

from tests.attacks.clients import Client, calling, message
from tests.attacks.target import Attack, Target

NAMES = [f"p{n}" for n in range(15_000)]
TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object", "required": NAMES}}
TEXTS = ("weather " + "a " * 230, "weather " + "\u201c" * 230 + "?" * 240, "weather in " * 40)


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await calling(target, seconds, 2, asks)


async def asks(client: Client) -> None:
    await client.send("session.update", session={"type": "realtime", "tools": [TOOL], "output_modalities": ["text"]})
    while not client.over:
        for text in TEXTS:
            await client.send("conversation.item.create", item=message(text))
            await client.send("response.create", response={})
            await asyncio.sleep(0.2)
            await client.send("response.cancel")


ATTACK = Attack("many_names", "a tool with 15,000 parameters, asked for by its name over and over", run)
