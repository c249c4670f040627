"""`voicepipe demo --pops`: several PoPs with the engines of one, which can be stopped as if they died, and started."""

import asyncio
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.commands.test_cli import demo_once, said
from tests.directory.fleets import FRANKFURT, LONDON, LONG_S, public_key, settings
from tests.support.ports import free_port
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voicepipe import config as configuration
from voicepipe.config import Config, HttpConfig
from voicepipe.config.engine_config import EnginesConfig
from voicepipe.demo.demo_fleet import standing, taken
from voicepipe.demo.hosts import CITIES
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.directory import PlacedCall
from voicepipe.engines.base import Engines, Prompt
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
