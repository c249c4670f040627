"""A directory and PoPs that answer, in one process: a caller asks where to call, and calls there."""

import asyncio
import json
from typing import Any

import httpx
import msgspec
import pytest
import websockets

from tests.directory.fleets import FRANKFURT, LONDON, LONG_S, fleet, public_key, settings
from tests.ingress.fake_pop import OPERATOR_KEY
from tests.ingress.webrtc.peer import Peer
from tests.support.waiting import until
from voicepipe.base.places import place_of
from voicepipe.call_api import Grant
from voicepipe.directory.router import WantedCall

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the directory's public key."""
    return public_key(tmp_path_factory.mktemp("keys"))


GRANT = Grant(id="", tenant="acme", slots=5)
WANTED = WantedCall(kind="websocket")


async def opened(url: str, **options: Any) -> Any:
    """The first event of a call, and the connection."""
    socket = await websockets.connect(url, **options)
    return socket, json.loads(await socket.recv())


async def refused(url: str, **options: Any) -> tuple[int, str]:
    """Status and code of a call that is not let in."""
    with pytest.raises(websockets.InvalidStatus) as caught:
        await websockets.connect(url, **options)
    return caught.value.response.status_code, json.loads(caught.value.response.body)["error"]["code"]


async def test_a_caller_is_sent_to_a_pop_and_gets_in_once(public: str) -> None:
    async with asyncio.timeout(LONG_S), fleet(settings("fra", public, FRANKFURT)) as (directory, (pop,)):
        placement = await directory.place(WANTED, GRANT)
        offer = placement.offers[0]
        socket, event = await opened(f"{offer.url}?token={offer.token}")
        assert event["type"] == "session.created"
        assert pop.calls == 1
        assert await refused(f"{offer.url}?token={offer.token}") == (401, "invalid_api_key")
        await until(lambda: directory.pops()[0].condition.calls == 1)
        assert directory.pops()[0].pending == 0
        await socket.close()
        await until(lambda: pop.calls == 0)


async def test_a_token_is_taken_as_a_key_is(public: str) -> None:
    async with asyncio.timeout(LONG_S), fleet(settings("fra", public, FRANKFURT)) as (directory, _):
        offers = [(await directory.place(WANTED, GRANT)).offers[0] for _ in range(2)]
        headers = {"Authorization": f"Bearer {offers[0].token}"}
        socket, _ = await opened(offers[0].url, additional_headers=headers)
        await socket.close()
        subprotocols = ["realtime", f"openai-insecure-api-key.{offers[1].token}"]
        socket, _ = await opened(offers[1].url, subprotocols=subprotocols)
        await socket.close()


async def test_a_calls_token_opens_nothing_but_its_call(public: str) -> None:
    async with asyncio.timeout(LONG_S), fleet(settings("fra", public, FRANKFURT)) as (directory, (pop,)):
        token = (await directory.place(WANTED, GRANT)).offers[0].token
        base = f"http://127.0.0.1:{pop.config.http.port}"
        async with httpx.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {token}"}) as client:
            assert (await client.get("/v1/realtime/calls")).status_code == 401
            assert (await client.post("/v1/realtime/client_secrets")).status_code == 401
            assert (await client.get("/v1/models")).status_code == 200


async def test_a_token_begins_the_kind_of_call_that_it_was_made_for(public: str) -> None:
    async with asyncio.timeout(LONG_S), fleet(settings("fra", public, FRANKFURT)) as (directory, (pop,)):
        offer = (await directory.place(WANTED, msgspec.structs.replace(GRANT, kind="webrtc"))).offers[0]
        assert await refused(f"{offer.url}?token={offer.token}") == (401, "invalid_api_key")
        assert pop.calls == 0
        by_websocket = (await directory.place(WANTED, msgspec.structs.replace(GRANT, kind="websocket"))).offers[0]
        socket, _ = await opened(f"{by_websocket.url}?token={by_websocket.token}")
        await socket.close()


async def test_who_called_with_a_token_hangs_up_with_it_and_nobody_elses_call(public: str) -> None:
    async with asyncio.timeout(LONG_S), fleet(settings("fra", public, FRANKFURT)) as (directory, (pop,)):
        offers = [(await directory.place(WantedCall(kind="webrtc"), GRANT)).offers[0] for _ in range(2)]
        mine, other = ({"Authorization": f"Bearer {offer.token}"} for offer in offers)
        peer = Peer()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{pop.config.http.port}") as client:
            sent: dict[str, Any] = {
                "content": await peer.offer(),
                "headers": {**mine, "Content-Type": "application/sdp"},
            }
            answer = await client.post(offers[0].url, **sent)
            assert answer.status_code == 201
            call = answer.headers["location"]
            assert (await client.post(offers[0].url, **sent)).status_code == 401
            assert (await client.delete(call, headers=other)).status_code == 404
            assert pop.calls == 1
            assert (await client.delete(call, headers=mine)).status_code == 200
            await until(lambda: pop.calls == 0)
        await peer.connection.close()


async def test_the_tokens_of_one_ek_key_end_only_their_own_calls(public: str) -> None:
    held = msgspec.structs.replace(GRANT, holder="ek_1", agent="front-desk")
    async with asyncio.timeout(LONG_S), fleet(settings("fra", public, FRANKFURT)) as (directory, (pop,)):
        offers = [(await directory.place(WantedCall(kind="webrtc"), held)).offers[0] for _ in range(2)]
        mine, other = ({"Authorization": f"Bearer {offer.token}"} for offer in offers)
        peer = Peer()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{pop.config.http.port}") as client:
            headers = {**mine, "Content-Type": "application/sdp"}
            answer = await client.post(offers[0].url, content=await peer.offer(), headers=headers)
            call = answer.headers["location"]
            assert (await client.delete(call, headers=other)).status_code == 404
            assert (await client.delete(call, headers=mine)).status_code == 200
            await until(lambda: pop.calls == 0)
        await peer.connection.close()


async def test_only_a_token_may_stand_in_an_address(public: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", OPERATOR_KEY)
    tenants = [{"name": "acme", "key_env": "ACME_KEY"}]
    config = settings("fra", public, FRANKFURT, tenants=tenants)
    async with asyncio.timeout(LONG_S), fleet(config):
        url = f"ws{config.fleet.url.removeprefix('http')}/v1/realtime"
        assert (await refused(f"{url}?token={OPERATOR_KEY}"))[0] == 401
        assert (await refused(f"{url}?token=vp_forged"))[0] == 401
        socket, _ = await opened(url, additional_headers={"Authorization": f"Bearer {OPERATOR_KEY}"})
        await socket.close()


async def test_a_pop_that_drains_is_left_out_at_once(public: str) -> None:
    fra, lhr = settings("fra", public, FRANKFURT), settings("lhr", public, LONDON)
    async with asyncio.timeout(LONG_S), fleet(fra, lhr) as (directory, (first, _)):
        wanted = WantedCall(kind="websocket", place=place_of(fra.fleet.place))
        assert (await directory.place(wanted, GRANT)).offers[0].pop == "fra"
        draining = asyncio.create_task(first.drain())
        await until(lambda: all(seen.condition.status == "draining" for seen in directory.pops() if seen.pop == "fra"))
        assert [offer.pop for offer in (await directory.place(wanted, GRANT)).offers] == ["lhr"]
        await draining
