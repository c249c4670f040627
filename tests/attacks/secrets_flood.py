"""Short-lived keys by the thousand, each with as long a session as is taken, or with one that takes long to decode."""

import asyncio
import json
import time

import httpx

from tests.attacks.target import Attack, Target

AT_A_TIME = 4
SESSIONS: tuple[dict[str, object], ...] = (
    {},
    {"type": "realtime", "instructions": "i" * 100_000},
    {"type": "realtime", "x": [{}] * 100_000},
    {"type": "realtime", "x": "y" * 1_000_000},
)
EXPIRES = {"anchor": "created_at", "seconds": 60}
BODIES = tuple(json.dumps({"expires_after": EXPIRES, "session": session}) for session in SESSIONS)


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    until = time.monotonic() + seconds
    headers = {"Authorization": f"Bearer {target.key}"} if target.key else {}
    async with httpx.AsyncClient(headers=headers, timeout=5) as client:
        await asyncio.gather(*(makes(client, target, until) for _ in range(AT_A_TIME)))


async def makes(client: httpx.AsyncClient, target: Target, until: float) -> None:
    n = 0
    while time.monotonic() < until:
        n += 1
        try:
            body = BODIES[n % len(BODIES)]
            answer = await client.post(f"{target.http}/v1/realtime/client_secrets", content=body)
            target.told[f"HTTP {answer.status_code}"] += 1
        except httpx.HTTPError:
            target.told["closed"] += 1
            await asyncio.sleep(0.1)


ATTACK = Attack("secrets_flood", "POST /v1/realtime/client_secrets over and over, with sessions of up to 1 MB", run)
