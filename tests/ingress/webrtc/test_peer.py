"""A WebRTC call from its answered offer to its end."""

import asyncio
import json

import pytest
from websockets.asyncio.client import connect

from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.webrtc.peer import Peer, dialled, post, web, webrtc
from tests.support.waiting import until
from voicepipe.ingress import server
from voicepipe.pop import pop_http


async def test_a_peer_that_never_comes_gives_back_its_place(caplog: pytest.LogCaptureFixture) -> None:
    pop = FakePop(webrtc(connect_ms=300))
    async with serving(pop) as address:
        peer = Peer()
        assert (await post(address, await peer.offer())).status_code == 201
        assert pop.live == 1
        await settled(pop)
        await peer.close()
    assert "not connected" in caplog.text


async def test_hanging_up_before_there_is_a_connection_gives_back_the_place() -> None:
    pop = FakePop()
    async with serving(pop) as address, web(address) as client:
        peer = Peer()
        placed = await post(address, await peer.offer())
        location = placed.headers["Location"]
        async with connect(f"ws://{address}/v1/realtime?call_id={location.rpartition('/')[2]}", proxy=None) as beside:
            assert json.loads(await beside.recv())["type"] == "session.created"
            assert (await client.delete(location)).status_code == 200
            await asyncio.wait_for(beside.wait_closed(), 60)
        await settled(pop)
        await peer.close()


async def test_a_server_that_goes_down_tells_its_callers() -> None:
    pop = FakePop()
    listener = server.bind(pop.config.http)
    serve = asyncio.create_task(pop_http.serve(pop, listener))
    await pop.serving.wait()
    async with dialled(f"127.0.0.1:{listener.getsockname()[1]}") as (peer, _):
        serve.cancel()
        assert (await peer.saw("error"))["error"]["code"] == "server_shutdown"
        await until(lambda: peer.connection.connectionState == "closed")
    await asyncio.wait({serve})
    assert not pop.live


async def test_a_pump_that_fails_ends_its_call() -> None:
    pop = FakePop()
    async with serving(pop) as address, dialled(address):
        line = pop.calls[0].line

        def fails() -> None:
            raise RuntimeError("boom")

        with pytest.raises(RuntimeError, match="boom"):
            await asyncio.wait_for(line.pace(fails, asyncio.Event()), 60)


async def test_the_line_tells_how_its_network_fares() -> None:
    pop = FakePop()
    async with serving(pop) as address, dialled(address) as (peer, _):
        await until(lambda: pop.calls and len(pop.calls[0].blocks) > 25)
        network = pop.calls[0].line.network()
        assert network.loss_percent == 0 and network.jitter_ms is not None
