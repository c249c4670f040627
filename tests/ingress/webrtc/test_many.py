"""Many calls, one after the other and side by side: nothing crashes, nothing is left."""

import asyncio
import gc
import os

from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.webrtc.peer import post, web
from tests.ingress.webrtc.test_calls import webrtc
from tests.support.sinks import Packets
from tests.support.waiting import until
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.rtp import sdp
from voicepipe.rtp.codec import OPUS
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.rtp_session import RtpSession
from voicepipe.rtp.transport import Transport, UdpNetwork

CALLS, AT_A_TIME = 80, 10
KINDS = (HostedCall, RtpSession, Transport)


async def call(address: str, number: int) -> None:
    """Set up, a second's packets at once, hung up in one of four ways."""
    transport, packets = Transport(UdpNetwork(), controlling=True), Packets()
    transport.deliver_to(packets)
    received = packets.data
    channel = transport.open_channel("oai-events")
    try:
        placed = await post(address, sdp.offer(transport, await transport.gather(), (OPUS,)))
        assert placed.status_code == 201
        if number % 4 == 3:
            return  # gone before it was connected
        await transport.connect(sdp.read(placed.text).remote)
        for n in range(50):
            transport.send_rtp(bytes(RtpPacket(111, n, n * 960, 5, b"\xfc\xff\xfe")))
        await until(lambda: received, 60)
        if number % 4 == 1:
            async with web(address) as client:
                assert (await client.delete(placed.headers["Location"])).status_code == 200
            await asyncio.wait_for(transport.gone(), 60)
        elif number % 4 == 2:
            channel.close()
    finally:
        await transport.close()


def held() -> int:
    gc.collect()
    return sum(type(thing) in KINDS for thing in gc.get_objects())


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


async def test_many_calls_leave_nothing_behind() -> None:
    pop = FakePop(webrtc(connect_ms=5000))
    async with serving(pop) as address:
        await call(address, 0)
        await settled(pop)
        pop.calls.clear()
        before = held(), descriptors()
        places = asyncio.Semaphore(AT_A_TIME)

        async def placed(number: int) -> None:
            async with places:
                await call(address, number)

        async with asyncio.timeout(300), asyncio.TaskGroup() as group:
            for number in range(CALLS):
                group.create_task(placed(number))
        assert len(pop.calls) == CALLS
        async with asyncio.timeout(60):
            while pop.live:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        pop.calls.clear()
        try:
            await until(lambda: held() <= before[0] and descriptors() <= before[1], 30)
        except TimeoutError:
            raise AssertionError(f"{before} before, {held()} and {descriptors()} now") from None
