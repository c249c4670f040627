"""A caller that offers and an answerer, both our own transport, connected."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.sinks import Packets
from voicepipe.rtp import sdp
from voicepipe.rtp.codec import OPUS, PCMU
from voicepipe.rtp.transport import Transport, UdpNetwork

LOOPBACK = UdpNetwork()


class Ends:
    def __init__(self, caller: UdpNetwork = LOOPBACK, answerer: UdpNetwork = LOOPBACK) -> None:
        self.caller = Transport(caller, controlling=True)
        self.answerer = Transport(answerer, controlling=False)
        packets = Packets()
        self.heard = packets.data
        self.answerer.deliver_to(packets)
        self.offer = self.answer = ""

    async def connect(self) -> None:
        self.offer = sdp.offer(self.caller, await self.caller.gather(), (OPUS, PCMU))
        asked = sdp.read(self.offer)
        self.answer = sdp.answer(asked, self.answerer, await self.answerer.gather(), ssrc=7)
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            group.create_task(self.answerer.connect(asked.remote))
            group.create_task(self.caller.connect(sdp.read(self.answer).remote))

    async def close(self) -> None:
        await self.caller.close()
        await self.answerer.close()


@asynccontextmanager
async def connected(caller: UdpNetwork = LOOPBACK, answerer: UdpNetwork = LOOPBACK) -> AsyncIterator[Ends]:
    ends = Ends(caller, answerer)
    try:
        await ends.connect()
        yield ends
    finally:
        await ends.close()
