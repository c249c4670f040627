"""Replies whose words are given, and very long: one word without an end, and many marks."""

import asyncio

from tests.attacks.clients import Client, calling
from tests.attacks.target import Attack, Target

TEXTS = ("a" * 1_500_000, "a" * 100_000, "#1" * 50_000, "(a " * 30_000, "1, " * 30_000)


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await calling(target, seconds, 2, says)


async def says(client: Client) -> None:
    while not client.over:
        for text in TEXTS:
            for modality in ("text", "audio"):
                asked = {"instructions": f'Say exactly: "{text}"', "output_modalities": [modality]}
                await client.send("response.create", response=asked)
                await asyncio.sleep(0.2)
                await client.send("response.cancel")


ATTACK = Attack("say_exactly", "response.create that says 1.5 MB, 100 kB, and 100 kB of marks", run)
