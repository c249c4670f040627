"""Minutes of sound in one message, again and again."""

import base64

from tests.attacks.clients import Client, calling
from tests.attacks.target import Attack, Target

SOUND = base64.b64encode(bytes(240 * 48_000)).decode()


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await calling(target, seconds, 2, appends)


async def appends(client: Client) -> None:
    while not client.over:
        await client.send("input_audio_buffer.append", audio=SOUND)


ATTACK = Attack("big_appends", "240 s of sound in one append, over and over on 2 calls", run)
