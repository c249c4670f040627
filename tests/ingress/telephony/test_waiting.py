"""Streams that do not begin: whoever has seen one signature of Twilio's can open them, since it holds for ever."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.ingress.fake_pop import serving
from tests.ingress.telephony.test_twilio import opened, rung
from tests.ingress.telephony.twilio_provider import ENV, TOKEN, Stream, signed
from tests.support.waiting import until
from voicepipe.ingress import server
from voicepipe.ingress.visits import ConnectionLimits, Visits

EACH = 10
THERE = "127.0.0.9"
"""An address that is no proxy's."""


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Visits:
    made = Visits(ConnectionLimits(4 * EACH, 2 * EACH, EACH))
    monkeypatch.setattr(server, "Visits", lambda room, proxies: made)
    monkeypatch.setenv(ENV, TOKEN)
    return made


async def streamed(address: str) -> ClientConnection:
    url = f"ws://{address}/twilio/stream"
    return await connect(url, additional_headers=signed(url), proxy=None, local_addr=(THERE, 0))


async def test_streams_that_do_not_begin_are_strangers(visits: Visits) -> None:
    async with serving(opened()) as address, AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(await streamed(address)) for _ in range(3 * EACH)]
        assert len(visits) <= EACH + 1
        async with asyncio.timeout(60):
            await sockets[0].wait_closed()
        assert sockets[-1].close_code is None, "who comes is let in, and the oldest one goes"


async def test_a_stream_that_has_its_place_is_none(visits: Visits) -> None:
    pop = opened()
    async with serving(pop) as address, AsyncExitStack() as stack:
        socket = await stack.enter_async_context(await streamed(address))
        call = Stream(socket, "CA1")
        await call.start(await rung(address))
        await until(lambda: pop.calls)
        for _ in range(3 * EACH):
            await stack.enter_async_context(await streamed(address))
        assert socket.close_code is None and pop.live == 1
        await socket.close()
