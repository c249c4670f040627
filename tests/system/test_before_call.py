"""What callers get whose agent has a hook before the answer: by each door, of a server and of a function, whatever the
hook does; and that no call leaves a slot, a task or a port behind."""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import websockets
from websockets.asyncio.client import connect

from tests.ingress.sip.peer import Phone
from tests.ingress.webrtc.peer import Peer
from tests.support.hook_server import BREAKS, SLOW, HookServer, hook_server
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe.config import Config
from voicepipe.pop.pop import Pop
from voicepipe.pop.running import running

pytestmark = pytest.mark.e2e

SCRIPTED = dict.fromkeys(("vad", "asr", "llm", "tts"), "scripted")
FUNCTIONS = """
import asyncio, json, pathlib

async def ask(call):
    answer = json.loads((pathlib.Path(__file__).parent / "answer.json").read_text())
    if answer == "slow":
        await asyncio.sleep(60)
    if answer == "breaks":
        raise RuntimeError("it broke")
    return answer
"""
DOORS = ("websocket", "webrtc", "sip")


class Site:
    """A PoP whose agent "front-desk" has a hook; the agent "night" answers if that says so, and "plain" has none."""

    def __init__(self, pop: Pop, folder: Path) -> None:
        self.pop, self.folder = pop, folder
        self.http = f"127.0.0.1:{pop.config.http.port}"
        self.offer = ""

    async def call(self, door: str, agent: str = "front-desk") -> str:
        """Place a call and hang up. Returns who answered, or the code of the refusal."""
        match door:
            case "websocket":
                return await self._by_websocket(agent)
            case "webrtc":
                return await self._by_webrtc(agent)
        return await self._by_sip(agent)

    async def _by_websocket(self, agent: str) -> str:
        try:
            async with connect(f"ws://{self.http}/v1/realtime?model={agent}", proxy=None) as socket:
                return str(json.loads(await socket.recv())["session"]["model"])
        except websockets.InvalidStatus as error:
            return f"{error.response.status_code} {json.loads(error.response.body or b'{}')['error']['code']}"

    async def _by_webrtc(self, agent: str) -> str:
        async with httpx.AsyncClient(base_url=f"http://{self.http}", trust_env=False) as client:
            if not self.offer:
                peer = Peer()
                self.offer = await peer.offer()
                await peer.close()
            kind = {"Content-Type": "application/sdp"}
            answer = await client.post(f"/v1/realtime/calls?model={agent}", content=self.offer, headers=kind)
            if answer.status_code != 201:
                return f"{answer.status_code} {answer.json()['error']['code']}"
            where = answer.headers["Location"]
            rows = (await client.get("/v1/realtime/calls")).json()["data"]
            await client.post(f"{where}/hangup")
            return str(next(row["agent"] for row in rows if where.endswith(row["id"])))

    async def _by_sip(self, agent: str) -> str:
        async with self.phone() as phone:
            answer = await phone.dial(uri=f"sip:{agent}@127.0.0.1")
            if answer.code != 200:
                return answer.start.removeprefix("SIP/2.0 ")
            call_id = answer.header("x-voicepipe-call-id")
            await until(lambda: any(row.id == call_id for row in self.pop.dashboard._calls.rows()))
            [row] = [row for row in self.pop.dashboard._calls.rows() if row.id == call_id]
            await phone.hang_up()
            rings = any(message.code == 180 for message in phone.said)
            return f"{row.agent}{' after it rang' if rings else ''}"

    def phone(self) -> Phone:
        return Phone(("127.0.0.1", self.pop.config.sip.port))


@asynccontextmanager
async def site(folder: Path, kind: str, *answers: Any, ms: int = 300) -> AsyncIterator[tuple[Site, HookServer]]:
    """A PoP, and its hook: a server that gives these answers, or a function that gives the first."""
    async with hook_server(*answers) as server:
        (folder / "hooks.py").write_text(FUNCTIONS)
        (folder / "answer.json").write_text(json.dumps(answers[0]))
        target = server.url if kind == "server" else "hooks:ask"
        (folder / "front-desk.toml").write_text(
            f'name = "front-desk"\n[hooks]\nbefore_call = "{target}"\nbefore_call_ms = {ms}\nagents = ["night"]\n'
        )
        (folder / "night.toml").write_text('name = "night"\n')
        (folder / "plain.toml").write_text('name = "plain"\n')
        routes = [{"called": "plain", "agent": "plain"}, {}]
        its = {"agents": str(folder), "slots": 30, "budget_ms": 600_000}
        tables = {"pop": its, "engines": SCRIPTED,
                  "http": {"port": free_port()}, "sip": {"port": free_port()}, "routes": routes,
                  "webrtc": {"connect_ms": 1000}, "records": {"folder": str(folder / "kept")}}  # fmt: skip
        async with running(msgspec.convert(tables, Config)) as pop:
            made = Site(pop, folder)
            yield made, server
            await until(lambda: pop.calls == 0)


TABLE: dict[str, tuple[Any, str, str]] = {
    "it returns another agent": ({"agent": "night"}, "night", "night after it rang"),
    "it says nothing": ({}, "front-desk", "front-desk after it rang"),
    "it is slow": (SLOW, "front-desk", "front-desk after it rang"),
    "it fails": (BREAKS, "front-desk", "front-desk after it rang"),
    "its answer is wrong": ({"agent": 5}, "front-desk", "front-desk after it rang"),
    "it names an agent that is not declared": ({"agent": "plain"}, "front-desk", "front-desk after it rang"),
    "it refuses": ({"refuse": "We are closed."}, "403 call_declined", "603 Decline"),
}


@pytest.mark.parametrize("kind", ["server", "function"])
@pytest.mark.parametrize("way", TABLE)
async def test_each_outcome_by_each_door(way: str, kind: str, tmp_path: Path) -> None:
    answer, by_http, by_sip = TABLE[way]
    async with site(tmp_path, kind, answer) as (its, _):
        for door in DOORS:
            assert await its.call(door) == (by_sip if door == "sip" else by_http)
        if "refuse" in way:
            assert its.pop.dashboard.view(None, 10).refusals == {"declined": 3}


async def test_a_server_that_is_down_costs_the_caller_nothing_but_its_answer(tmp_path: Path) -> None:
    async with site(tmp_path, "server", {}) as (its, server):
        await server.stop()
        for door in DOORS:
            assert (await its.call(door)).startswith("front-desk")


async def test_agents_without_a_hook_are_answered_without_ringing(tmp_path: Path) -> None:
    async with site(tmp_path, "server", SLOW) as (its, server):
        for door in DOORS:
            assert await its.call(door, "plain") == "plain"
        assert not server.asked


@pytest.mark.parametrize("kind", ["server", "function"])
@pytest.mark.parametrize("door", DOORS)
async def test_a_caller_who_is_gone_meanwhile_gives_the_slot_back_at_once(door: str, kind: str, tmp_path: Path) -> None:
    async with site(tmp_path, kind, SLOW, ms=10_000) as (its, server):
        loop = asyncio.get_running_loop()
        began = loop.time()
        if door == "sip":
            async with its.phone() as phone:
                phone.invite(uri="sip:front-desk@127.0.0.1")
                await phone.got("INVITE", 180)
                assert its.pop.calls == 1
                await until(lambda: kind != "server" or server.asked)
                phone.request("CANCEL", seq=phone.seq, branch=phone.branch, uri="sip:front-desk@127.0.0.1")
                assert (await phone.final("INVITE")).code == 487
                await until(lambda: its.pop.calls == 0)
        else:
            if door == "webrtc":
                await its.call(door, "plain")  # It makes the offer.
                await until(lambda: its.pop.calls == 0)
            calling = asyncio.create_task(its.call(door))
            await until(lambda: its.pop.calls == 1 and (kind != "server" or server.asked))
            calling.cancel()
            await asyncio.wait({calling})
            await until(lambda: its.pop.calls == 0)
        assert loop.time() - began < 9, "the hook has not come to its limit"
        if kind == "server":
            await until(lambda: server.left == 1)
        assert its.pop.dashboard.view(None, 10).refusals == {}


async def test_the_record_says_who_was_called_who_answered_and_how_the_hook_went(tmp_path: Path) -> None:
    async with site(tmp_path, "server", {"agent": "night"}, {"agent": "plain"}) as (its, server):
        for _ in range(2):
            await its.call("sip")
        async with httpx.AsyncClient(base_url=f"http://{its.http}", trust_env=False) as client:
            rows: list[dict[str, Any]] = []
            async with asyncio.timeout(60):
                while len(rows) < 2:
                    rows = (await client.get("/v1/records")).json()["data"]
        wrong, right = rows
        assert [row["id"] for row in (right, wrong)] == [asked["call"]["id"] for asked in server.asked]
        assert (right["agent"], right["hook"]["agent"], right["hook"]["outcome"]) == ("night", "front-desk", "answered")
        assert (wrong["agent"], wrong["hook"]["outcome"]) == ("front-desk", "invalid")
        assert "hooks.agents of front-desk does not name 'plain': add it there" in wrong["hook"]["why"]


async def test_a_telephone_rings_while_the_hook_is_asked(tmp_path: Path) -> None:
    async with site(tmp_path, "server", SLOW, ms=1000) as (its, _):
        async with its.phone() as phone:
            phone.invite(uri="sip:front-desk@127.0.0.1")
            await phone.got("INVITE", 180)
            assert not any(message.code >= 200 for message in phone.said)
            phone.took(await phone.final("INVITE"))
            phone.ack()
            await phone.hang_up()


def held(server: HookServer) -> tuple[int, int]:
    """The tasks of this process, but the hook server's, and its UDP ports."""
    tasks = [task for task in asyncio.all_tasks() if not server.has(task)]
    ours = set[str]()
    for fd in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            ours.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
    rows = [line.split() for net in ("udp", "udp6") for line in Path(f"/proc/net/{net}").read_text().splitlines()[1:]]
    return len(tasks), sum(row[9] in ours for row in rows)


@pytest.mark.slow
async def test_a_thousand_calls_of_all_kinds_leave_nothing_behind(tmp_path: Path) -> None:
    answers = [answer for answer, _, _ in TABLE.values()]
    chosen = random.Random(1)
    mixed = [chosen.choice(answers) for _ in range(3000)]
    async with site(tmp_path, "server", *mixed, {}, ms=100) as (its, server):
        for door in DOORS:
            await its.call(door)
        await until(lambda: its.pop.calls == 0)
        await asyncio.sleep(0.5)
        (tasks, ports), outcomes = held(server), Counter[str]()
        numbers = iter(range(1000))

        async def caller() -> None:
            for number in numbers:
                door = DOORS[number % 3]
                patience_s = 0.05 if number % 5 == 0 and door != "sip" else None
                try:
                    async with asyncio.timeout(patience_s):
                        outcomes[await its.call(door)] += 1
                except TimeoutError:
                    outcomes["gone"] += 1

        await asyncio.gather(*(caller() for _ in range(12)))
        assert outcomes.total() == 1000
        assert {"night", "front-desk", "403 call_declined", "603 Decline", "gone"} <= set(outcomes)
        await until(lambda: its.pop.calls == 0)
        await until(lambda: held(server)[0] <= tasks and held(server)[1] <= ports)
