"""Short-lived keys by the thousand, each with as long a session as is taken."""

import asyncio
import time

import httpx

from tests.attacks.target import Attack, Target

AT_A_TIME = 4
SESSIONS: tuple[dict[str, str], ...] = (
    {},
    {"type": "realtime", "instructions": "i" * 100_000},
    {"type": "realtime", "x": "y" * 1_000_000},
)


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
            body = {"expires_after": {"anchor": "created_at", "seconds": 60}, "session": SESSIONS[n % len(SESSIONS)]}
            answer = await client.post(f"{target.http}/v1/realtime/client_secrets", json=body)
            target.told[f"HTTP {answer.status_code}"] += 1
        except httpx.HTTPError:
            target.told["closed"] += 1
            await asyncio.sleep(0.1)


ATTACK = Attack("secrets_flood", "POST /v1/realtime/client_secrets over and over, with sessions of up to 1 MB", run)
