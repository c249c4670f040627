"""A directory and PoPs that answer, in one process: a caller asks where to call, and calls there."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.ingress.fake_pop import OPERATOR_KEY
from tests.waiting import until
from voicepipe import config as configuration
from voicepipe.call_api import Grant
from voicepipe.config import Config
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.directory.router import Wanted
from voicepipe.directory.tokens import Signer
from voicepipe.errors import ConfigError
from voicepipe.fleet_keys import key_id, public_key, signer
from voicepipe.places import place_of
from voicepipe.pop import Pop, member
from voicepipe.runtime import free_port

pytestmark = pytest.mark.e2e
KEY = Ed25519PrivateKey.generate()
GRANT = Grant(id="", tenant="acme", slots=5)
LONG_S = 60.0


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the directory's public key."""
    file = tmp_path_factory.mktemp("keys") / "directory.pub.pem"
    file.write_bytes(KEY.public_key().public_bytes(serialization.Encoding.PEM,
                                                   serialization.PublicFormat.SubjectPublicKeyInfo))  # fmt: skip
    return str(file)


def settings(name: str, public: str, place: tuple[float, float], **changes: Any) -> Config:
    """Of a PoP on a free port; its engines are scripted."""
    port = free_port(configuration.HttpConfig(port=0))
    tables = {
        "pop": {"id": name, "region": name, "slots": 4, "agents": str(configuration.data_directory() / "agents")},
        "http": {"port": port},
        "fleet": {"keys": [public], "place": list(place), "websocket_url": f"ws://127.0.0.1:{port}/v1/realtime",
                  "webrtc_url": f"http://127.0.0.1:{port}/v1/realtime/calls"},
        "engines": {"asr": "scripted", "llm": "scripted", "tts": "scripted"},
        **changes,
    }  # fmt: skip
    return configuration.parse(tables)


@asynccontextmanager
async def fleet(*configs: Config) -> AsyncIterator[tuple[Directory, list[Pop]]]:
    """They run, and the directory has heard of all that they are ready."""
    bus = MemoryBus()
    directory = Directory(bus, Signer(key_id(KEY.public_key()), KEY))
    async with asyncio.TaskGroup() as group:
        hearing = group.create_task(directory.run())
        async with AsyncExitStack() as stack:
            pops = [await stack.enter_async_context(member(config, bus)) for config in configs]
            await until(lambda: sum(seen.condition.status == "ok" for seen in directory.pops()) == len(configs), LONG_S)
            yield directory, pops
        hearing.cancel()


FRANKFURT, LONDON = (50.1, 8.7), (51.5, -0.1)
WANTED = Wanted(kind="websocket")


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


async def test_only_a_token_may_stand_in_an_address(public: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", OPERATOR_KEY)
    tenants = [{"name": "acme", "key_env": "ACME_KEY"}]
    config = settings("fra", public, FRANKFURT, tenants=tenants)
    async with asyncio.timeout(LONG_S), fleet(config):
        url = config.fleet.websocket_url
        assert (await refused(f"{url}?token={OPERATOR_KEY}"))[0] == 401
        assert (await refused(f"{url}?token=vp_forged"))[0] == 401
        socket, _ = await opened(url, additional_headers={"Authorization": f"Bearer {OPERATOR_KEY}"})
        await socket.close()


async def test_a_pop_that_drains_is_left_out_at_once(public: str) -> None:
    fra, lhr = settings("fra", public, FRANKFURT), settings("lhr", public, LONDON)
    async with asyncio.timeout(LONG_S), fleet(fra, lhr) as (directory, (first, _)):
        wanted = Wanted(kind="websocket", place=place_of(fra.fleet.place))
        assert (await directory.place(wanted, GRANT)).offers[0].pop == "fra"
        draining = asyncio.create_task(first.drain())
        await until(lambda: all(seen.condition.status == "draining" for seen in directory.pops() if seen.pop == "fra"))
        assert [offer.pop for offer in (await directory.place(wanted, GRANT)).offers] == ["lhr"]
        await draining


def test_a_key_that_is_none_is_told_with_how_to_make_one(tmp_path: Path) -> None:
    (file := tmp_path / "key.pem").write_text("nothing")
    for read, command in ((public_key, "openssl pkey"), (signer, "openssl genpkey")):
        with pytest.raises(ConfigError, match=command):
            read(str(file))
