"""Session updates as fast as they are read: small ones of a large session, large ones, and some of many small parts or
of numbers that take long to read."""

from tests.attacks.clients import Client, calling
from tests.attacks.target import Attack, Target

TOOLS = [{"type": "function", "name": f"f{n}", "description": "d" * 200, "parameters": {}} for n in range(300)]
PARTS: dict[str, list[list[str]]] = {"x": [[]] * 150_000}
NUMBERS = {"x": [9e303] * 60_000}


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await calling(target, seconds, 2, updates)


async def updates(client: Client) -> None:
    await client.send("session.update", session={"type": "realtime", "tools": TOOLS})
    n = 0
    while not client.over:
        n += 1
        await client.send("session.update", session={"type": "realtime", "max_output_tokens": 1 + n % 1000})
        if n % 20 == 0:
            await client.send("session.update", session={"type": "realtime", "instructions": "i" * 100_000})
        if n % 50 == 0:
            await client.send("session.update", session={"type": "realtime", **PARTS})
            await client.send("session.update", session={"type": "realtime", **NUMBERS})


ATTACK = Attack(
    "session_update_burst",
    "session.update over and over, of 300 tools, 100 kB, 150,000 parts, 60,000 numbers",
    run,
)
