"""`voicepipe demo --pops`: several PoPs with the engines of one, which can be stopped as if they died, and started."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import websockets

from tests.commands.test_cli import demo_once, said
from tests.directory.fleets import FRANKFURT, LONDON, LONG_S, public_key, settings
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe import config as configuration
from voicepipe.config import Config, HttpConfig
from voicepipe.config.engine_config import EnginesConfig
from voicepipe.demo.demo_fleet import standing, taken
from voicepipe.demo.hosts import CITIES, Cable, DemoHost
from voicepipe.directory import subjects
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.directory import PlacedCall
from voicepipe.engines.base import Engines, Prompt
from voicepipe.engines.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voicepipe.pop.running import member
from voicepipe.serving.runtime import url

SCRIPTED = EnginesConfig(vad="scripted", asr="scripted", llm="scripted", tts="scripted")


@pytest.fixture
def public(tmp_path: Path) -> str:
    """The path of the directory's public key."""
    return public_key(tmp_path)


@pytest.fixture
def scripted() -> Config:
    """Of a demo whose directory answers at a free port, and whose engines are scripted."""
    http = HttpConfig(port=0)
    http = msgspec.structs.replace(http, port=free_port())
    return msgspec.structs.replace(configuration.load(), http=http, engines=SCRIPTED)


# --- the command


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("--lan",), "anybody who reaches its map may stop PoPs"),
        (("--sip-port", "0"), "--pops takes no phones"),
        (("--host", "0.0.0.0"), "lets other machines call, and no tenant has a key"),
    ],
)
def test_what_does_not_go_with_several_pops(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], why: str
) -> None:
    status, _, err = said(capsys, "demo", "--pops", "3", "--port", "0", *argv)
    assert status == 2 and why in err


@pytest.mark.parametrize("pops", ["1", "6", "many"])
def test_two_to_five(capsys: pytest.CaptureFixture[str], pops: str) -> None:
    assert said(capsys, "demo", "--pops", pops)[0] == 2


@pytest.mark.e2e
def test_a_spoken_call_goes_to_the_nearest_pop() -> None:
    out, err = demo_once("--pops", "2")
    assert "and fra1 (Frankfurt), iad1 (Virginia)\n" in out
    assert "The directory sent the caller in Paris to fra1 in Frankfurt: the nearest that answers in time." in out
    for shown in ("ready in ", "heard ", "answered ", "The caller heard the answer ", "Had it not let them in: iad1."):
        assert shown in out
    assert "Traceback" not in err


def test_a_pop_that_did_not_let_the_caller_in_is_named() -> None:
    placed = PlacedCall(at=0.0, call="c", tenant="local", kind="websocket", place=None, pop="fra1", why="nearest",
                    near_ms=71.2, by="distance", turn_ms=230.0, others=("iad1",))  # fmt: skip
    assert "71 ms later" in taken(placed, "fra1", CITIES)
    assert "fra1 did not let them in, so iad1 took the call." in taken(placed, "iad1", CITIES)


# --- engines that PoPs share


class Asr(ScriptedAsr):
    closed = False

    async def close(self) -> None:
        self.closed = True


class Llm(ScriptedLlm):
    def __init__(self) -> None:
        super().__init__()
        self.knows: list[int] = []

    async def warm(self, prompt: Prompt) -> None:
        self.knows.append(id(prompt.agent))


@pytest.mark.e2e
async def test_pops_share_engines_and_leave_them_to_others(public: str) -> None:
    llm, asr = Llm(), Asr()
    engines, bus = Engines(ScriptedVad(), asr, llm, ScriptedTts()), MemoryBus()
    first, second = settings("fra", public, FRANKFURT), settings("lhr", public, LONDON)
    async with asyncio.timeout(LONG_S), member(first, bus, engines) as stays:
        async with member(second, bus, engines) as goes:
            assert goes.engines.asr is stays.engines.asr is asr
            assert goes.tts_cache is not stays.tts_cache
            assert llm.knows == [id(stays.agent(None)), id(goes.agent(None))], "each PoP's own agents are learnt"
        assert not asr.closed
        assert stays.health().status == "ok"
    assert not asr.closed


# --- one host


@asynccontextmanager
async def host(public: str, bus: MemoryBus) -> AsyncIterator[DemoHost]:
    engines = Engines(ScriptedVad(), ScriptedAsr(), ScriptedLlm(), ScriptedTts())
    made = DemoHost(CITIES[0], settings("fra1", public, FRANKFURT, pop={"drain_ms": 60_000}), bus, engines)
    running = asyncio.create_task(made.run())
    async with asyncio.timeout(LONG_S):
        await made.answers.wait()
        yield made
        running.cancel()
        await asyncio.wait({running})


async def connected(host: DemoHost) -> Any:
    socket = await websockets.connect(f"{url(host.config.http, 'ws')}/v1/realtime")
    assert json.loads(await socket.recv())["type"] == "session.created"
    return socket


def epoch(message: BusMessage) -> int:
    """Of the run that reports. No other message comes, such as a goodbye."""
    assert message.subject == subjects.report_of("fra1")
    return int(json.loads(message.data)["epoch"])


@pytest.mark.e2e
async def test_a_pop_that_is_stopped_cuts_its_calls_and_says_no_goodbye(public: str) -> None:
    bus = MemoryBus()
    async with host(public, bus) as fra, bus.listen("vp.pop.>") as messages:
        run = epoch(await anext(messages))
        call = await connected(fra)
        fra.stop()
        with pytest.raises(websockets.ConnectionClosedError) as cut:
            while True:
                await call.recv()
        assert cut.value.rcvd is None, "no close frame"
        await until(lambda: fra.state == "stopped", LONG_S)
        with pytest.raises(OSError):
            await connected(fra)
        fra.start()
        await until(lambda: fra.state == "up", LONG_S)
        await (await connected(fra)).close()
        while epoch(await anext(messages)) == run:
            pass


@pytest.mark.e2e
async def test_a_pop_that_is_drained_lets_its_call_end_and_can_be_started_again(public: str) -> None:
    bus = MemoryBus()
    async with host(public, bus) as fra, bus.listen(subjects.goodbye_of("fra1")) as goodbyes:
        call = await connected(fra)
        await bus.publish(subjects.command_to("fra1"), b'{"do": "drain"}')
        await until(lambda: fra.state == "draining", LONG_S)
        with pytest.raises(websockets.InvalidStatus):
            await connected(fra)
        await call.close()
        await anext(goodbyes)
        await until(lambda: fra.state == "stopped", LONG_S)
        fra.start()
        await until(lambda: fra.state == "up", LONG_S)


@pytest.mark.e2e
async def test_a_pop_that_drains_can_be_stopped(public: str) -> None:
    bus = MemoryBus()
    async with host(public, bus) as fra:
        call = await connected(fra)
        await bus.publish(subjects.command_to("fra1"), b'{"do": "drain"}')
        await until(lambda: fra.state == "draining", LONG_S)
        fra.stop()
        with pytest.raises(websockets.ConnectionClosedError):
            while True:
                await call.recv()
        await until(lambda: fra.state == "stopped", LONG_S)


async def test_what_is_said_by_a_cable_that_is_cut_is_not_heard() -> None:
    bus = MemoryBus()
    cable = Cable(bus)
    async with bus.listen(">") as heard:
        await cable.publish("a.b", b"1")
        assert cable.is_connected()
        cable.cut()
        await cable.publish("a.b", b"2")
        await bus.publish("a.b", b"3")
        assert [(await anext(heard)).data for _ in range(2)] == [b"1", b"3"]
        assert not cable.is_connected()


# --- all of it


async def states(client: httpx.AsyncClient) -> dict[str, str]:
    return {pop["pop"]: pop["state"] for pop in (await client.get("/v1/demo")).json()["pops"]}


async def taking(client: httpx.AsyncClient) -> list[str]:
    """The PoPs that take calls, as the directory knows."""
    return [pop["pop"] for pop in (await client.get("/v1/pops")).json()["pops"] if pop["status"] == "ok"]


async def first(client: httpx.AsyncClient, latitude: float, longitude: float) -> str:
    asked = {"place": {"latitude": latitude, "longitude": longitude}}
    return str((await client.post("/v1/calls", json=asked)).json()["candidates"][0]["pop"])


@pytest.mark.e2e
async def test_the_next_call_goes_elsewhere_when_its_pop_is_stopped(scripted: Config) -> None:
    async with asyncio.timeout(LONG_S), standing(scripted, 3), httpx.AsyncClient(base_url=url(scripted.http)) as client:
        while len(await taking(client)) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        assert await first(client, *CITIES[2].place) == "nrt1"
        assert (await client.post("/v1/demo/pops/nrt1/stop")).status_code == 202
        while "nrt1" in await taking(client):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        assert await states(client) == {"fra1": "up", "iad1": "up", "nrt1": "stopped"}
        assert await first(client, *CITIES[2].place) != "nrt1"
        assert (await client.post("/v1/demo/pops/nrt1/start")).json() == {"pop": "nrt1", "ordered": "start"}
        while "nrt1" not in await taking(client):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        assert (await states(client))["nrt1"] == "up"
        unknown = await client.post("/v1/demo/pops/mars1/stop")
        assert unknown.status_code == 404 and "fra1, iad1, nrt1" in unknown.json()["error"]["message"]
        elsewhere = await client.post("/v1/demo/pops/fra1/stop", headers={"Origin": "https://evil.example"})
        assert elsewhere.status_code == 403
        assert "world" in (await client.get("/map")).text
