"""Nothing of a call that has ended waits for Python's cycle collector, however it ended."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import aioice.ice
import pytest
from aiortc.rtcsctptransport import AbortChunk, Chunk, SackChunk

from latency_probes.webrtc import CALLS, Placed, place
from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.freed import freed as nothing_left
from tests.ingress.webrtc.peer import post, web
from tests.ingress.webrtc.test_calls import webrtc
from tests.support.waiting import until
from voicepipe.ingress.webrtc import peer
from voicepipe.ingress.webrtc.channel import UNSENT
from voicepipe.rtp import sdp
from voicepipe.rtp.codec import OPUS
from voicepipe.rtp.transport import Transport, UdpNetwork

End = Callable[[str, Placed], Awaitable[None]]


async def hangs_up(address: str, placed: Placed) -> None:
    await placed.hang_up()


async def is_hung_up(address: str, placed: Placed) -> None:
    async with web(address) as client:
        (call,) = (await client.get("/v1/realtime/calls")).json()["data"]
        assert (await client.delete(f"/v1/realtime/calls/{call['id']}")).status_code == 200
    await asyncio.wait_for(placed.transport.gone(), 60)


async def aborts_sctp(address: str, placed: Placed) -> None:
    await placed.transport.sctp._send_chunk(AbortChunk())
    await asyncio.sleep(0.05)
    await placed.hang_up()


async def sends_too_much(address: str, placed: Placed) -> None:
    placed.transport.sctp._remote_max_message_size = 0
    placed.channel.send("x" * 300_000)
    await asyncio.wait_for(placed.transport.gone(), 60)


async def acknowledges_nothing(address: str, placed: Placed) -> None:
    """It answers on every other layer, and has more events coming than our side lets wait."""
    sctp = placed.transport.sctp
    send = sctp._send_chunk

    async def without_sacks(chunk: Chunk) -> None:
        if not isinstance(chunk, SackChunk):
            await send(chunk)

    sctp._send_chunk = without_sacks  # type: ignore[method-assign]
    update = json.dumps({"type": "session.update", "session": {"type": "realtime", "instructions": "x" * 100_000}})
    for _ in range(2 * UNSENT // len(update)):
        placed.channel.send(update)
    await until(lambda: not placed.channel.bufferedAmount)
    async with web(address) as client:
        (call,) = (await client.get(CALLS)).json()["data"]
        assert (await client.delete(f"{CALLS}/{call['id']}")).status_code == 200
        while (await client.get(CALLS)).json()["data"]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    del sctp._send_chunk  # a circle of our own


async def vanishes(address: str, placed: Placed) -> None:
    await placed.vanish()


async def call(address: str, end: End) -> None:
    placed = await place(f"http://{address}", "", "")
    try:
        await until(lambda: placed.channel.readyState == "open")
        for _ in range(10):
            placed.send(b"\xfc\xff\xfe")
        await end(address, placed)
    finally:
        await placed.hang_up()


async def never_connects(address: str) -> None:
    transport = Transport(UdpNetwork(), controlling=True)
    answer = await post(address, sdp.offer(transport, await transport.gather(), (OPUS,)))
    assert answer.status_code == 201
    await transport.close()


async def test_an_ended_call_is_freed_without_the_garbage_collector() -> None:
    await freed(lambda address: call(address, hangs_up))


@pytest.mark.parametrize("end", [is_hung_up, aborts_sctp, sends_too_much])
async def test_so_is_one_that_ended_otherwise(end: End) -> None:
    await freed(lambda address: call(address, end))


async def test_so_is_one_whose_caller_never_connected() -> None:
    await freed(never_connects)


async def test_so_is_one_whose_caller_is_gone_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aioice.ice, "CONSENT_INTERVAL", 0.2)
    monkeypatch.setattr(aioice.ice, "CONSENT_FAILURES", 2)
    await freed(lambda address: call(address, vanishes))


async def test_so_is_one_whose_caller_acknowledges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCTP asks for acknowledgements for ever, and consent goes on: only our own time limit ends the call."""
    monkeypatch.setattr(peer, "LINGER", 0.5, raising=False)
    async with asyncio.timeout(60):
        await freed(lambda address: call(address, acknowledges_nothing))


async def freed(one: Callable[[str], Awaitable[None]]) -> None:
    pop = FakePop(webrtc(connect_ms=1000))
    async with serving(pop) as address:
        await nothing_left(pop, lambda: one(address))
