"""A new `speed` all the time: what was made ahead for the one before is of no use to anybody."""

import asyncio
import itertools
import json
import time

import websockets

from tests.attacks.target import Attack, Target

CALLS = 4
PAUSE_S = 0.002


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    until = time.monotonic() + seconds
    await asyncio.gather(*(changes(target, until) for _ in range(CALLS)))


async def changes(target: Target, until: float) -> None:
    """One call, and another when it is ended."""
    headers = {"Authorization": f"Bearer {target.key}"} if target.key else {}
    while time.monotonic() < until:
        try:
            async with websockets.connect(f"{target.ws}/v1/realtime", additional_headers=headers) as socket:
                reading = asyncio.create_task(discard(socket))
                try:
                    for n in itertools.count():
                        if time.monotonic() >= until:
                            break
                        output = {"speed": 0.5 + n % 1000 / 1000}
                        session = {"type": "realtime", "audio": {"output": output}}
                        await socket.send(json.dumps({"type": "session.update", "session": session}))
                        target.told["changes"] += 1
                        await asyncio.sleep(PAUSE_S)
                finally:
                    reading.cancel()
        except (OSError, websockets.WebSocketException):
            target.told["closed"] += 1
            await asyncio.sleep(0.1)


async def discard(socket: websockets.ClientConnection) -> None:
    async for _ in socket:
        pass


ATTACK = Attack("speed_changes", "session.update with another speed, 500 a second on each of 4 calls", run)
