"""Messages of megabytes that are no sound: masses of `{}` in the fields by which every message is looked at."""

from tests.attacks.clients import Client, calling
from tests.attacks.target import Attack, Target

MASSES = "[" + ",".join(["{}"] * 5_000_000) + "]"
MESSAGES = (
    '{"type":"session.update","event_id":' + MASSES + "}",
    '{"type":"session.update","session":{"a":' + MASSES + '},"type":"input_audio_buffer.append"}',
)


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await calling(target, seconds, 2, sends)


async def sends(client: Client) -> None:
    while not client.over:
        for message in MESSAGES:
            await client.send_text(message)


ATTACK = Attack("big_messages", "15 MB of {} in one message that is no sound, over and over on 2 calls", run)
