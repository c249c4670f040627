"""Offers of calls whose callers never connect: each takes a place for `webrtc.connect_ms`."""

import asyncio

import httpx

from tests.attacks.rogue import paced
from tests.attacks.target import Attack, Target
from voicepipe.rtp import sdp
from voicepipe.rtp.codec import OPUS
from voicepipe.rtp.transport import Transport, UdpNetwork

CALLS = "/v1/realtime/calls"
EVERY = 5
"""20 a second."""
WEARY = ("a=rtpmap:1 a/1\r\n" + "a=rtcp-fb:* a\r\n") * 600
"""In every other offer: what names each codec with each feedback."""


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    transport = Transport(UdpNetwork(), controlling=True)
    offer = sdp.offer(transport, await transport.gather(), (OPUS,))
    await transport.close()
    headers = {"Content-Type": "application/sdp"} | ({"Authorization": f"Bearer {target.key}"} if target.key else {})
    placed = list[str]()
    async with httpx.AsyncClient(base_url=target.http, headers=headers, trust_env=False, timeout=10) as client:
        async for tick in paced(seconds):
            if tick % EVERY:
                continue
            try:
                answer = await client.post(CALLS, content=offer if tick % (2 * EVERY) else offer + WEARY)
            except httpx.HTTPError:
                continue
            target.told[f"HTTP {answer.status_code}"] += 1
            placed += [answer.headers["Location"]] if answer.status_code == 201 else []
        for location in placed:  # those that were given up meanwhile are unknown
            try:
                await client.delete(location)
            except httpx.HTTPError:
                await asyncio.sleep(0.1)


ATTACK = Attack("offers_flood", "20 offers a second whose callers never connect, half of them hard to read", run)
