"""Faults that are put in on purpose: the dashboard names each as what makes callers wait, and so does its own alert, on
series recorded while the fault lasted. A full KV cache needs vLLM: `tests/gpu_engines/test_vllm_full_cache.py`."""

import asyncio
import random
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from latency_probes.caller import Caller
from latency_probes.conversation import converse
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from latency_probes.sip import Dialled, SipCaller, free_port
from tests.directory.fleets import FRANKFURT, LONDON, OPERATOR, fleet, public_key, served, settings
from tests.observe.watched import Watched, pop
from tests.support.spoken import spoken
from voicepipe.directory.bus import MemoryBus
from voicepipe.pop.pop import Pop
from voicepipe.pop.running import running

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed (apt install prometheus)"),
]

CALLERS = 3
STAGES = ("asr", "llm", "tts")
ENGINES = """
[engines]
asr = "scripted"
[scripted]
hears = ["what are your opening hours"]
[ladder]
words_ms = 0
acknowledge_ms = 0
fallback_ms = 0
stall_ms = 0
"""
SLOW = {
    "llm": "[delays]\nfirst_token_ms = 2500\n",
    "asr": "[delays]\nasr_ms = 1500\n",
    "tts": "[delays]\ntts_ms = 2500\n",
}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is late is still an answer."""
    monkeypatch.setattr("latency_probes.conversation.MISSED_S", 20.0)


async def talk(caller: Caller, number: int, *intents: str) -> None:
    plan = CallPlan(number, "quiet", tuple(Turn("e2e", item) for item in spoken(*intents)))
    record = await converse(caller, plan, seed=number)
    assert not record.failure


@pytest.mark.parametrize("stage", STAGES)
def test_a_slow_stage_is_named(stage: str, tmp_path: Path) -> None:
    async def watch(pop: Watched) -> None:
        await pop.begin()
        async with asyncio.TaskGroup() as calls:
            for number in range(CALLERS):
                caller = RealtimeCaller(pop.url, "quiet", seed=number)
                calls.create_task(talk(caller, number, "hours", "parking"))
        named = await pop.culprits()
        assert next(what for what in named if what != "loop") == stage and "ms for " + stage in named[stage]
        alerts = [f'TurnsWaitForStage{{stage="{each}"}}' for each in STAGES]
        assert await pop.fire("TurnsLate", *alerts) == [True, *(each == stage for each in STAGES)]

    with pop(tmp_path, ENGINES + SLOW[stage]) as its:
        asyncio.run(watch(its))


def test_lost_packets_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, send = random.Random(1), Dialled.send

    def lossy(call: Dialled, payload: bytes) -> None:
        if rng.random() < 0.05:
            call._sent += 1
        else:
            send(call, payload)

    monkeypatch.setattr(Dialled, "send", lossy)
    port = free_port()

    async def watch(pop: Watched) -> None:
        await pop.begin()
        caller = SipCaller(pop.url, "quiet", seed=1, phone=f"127.0.0.1:{port}")
        talking = asyncio.create_task(talk(caller, 1, "hours", "parking"))
        named: dict[str, str] = {}
        while "loss" not in named and not talking.done():
            await asyncio.sleep(0.2)
            named = await pop.culprits()
        assert "1 of 1 calls lose 2 % or more of their packets" in named["loss"]
        await talking
        assert await pop.fire('CallersLosePackets{ingress="sip"}') == [True]

    with pop(tmp_path, ENGINES + f"[sip]\nport = {port}\n[pop]\nbudget_ms = 600000\n") as its:
        asyncio.run(watch(its))


@asynccontextmanager
async def in_process(tmp_path: Path) -> AsyncIterator[tuple[Pop, Watched]]:
    public = await asyncio.to_thread(public_key, tmp_path)
    config = settings("fra", public, FRANKFURT)
    async with running(config) as its:
        yield its, Watched(f"http://127.0.0.1:{config.http.port}", tmp_path)


async def test_a_blocked_event_loop_is_named(tmp_path: Path) -> None:
    async def block() -> None:
        """As a Python tool does that is not async, but says so."""
        while True:
            until = time.perf_counter() + 0.12
            while time.perf_counter() < until:
                pass
            await asyncio.sleep(0.05)

    async with in_process(tmp_path) as (_, watched):
        await watched.begin()
        blocking = asyncio.create_task(block())
        named: dict[str, str] = {}
        async with asyncio.timeout(60):
            while "loop" not in named:
                await asyncio.sleep(0.5)
                named = await watched.culprits()
        assert "something blocks it" in named["loop"]
        assert await watched.fire("EventLoopLate", "EngineDown") == [True, False]
        blocking.cancel()


async def test_a_pop_that_died_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public = await asyncio.to_thread(public_key, tmp_path)
    bus = MemoryBus()
    publish, dead = bus.publish, asyncio.Event()

    async def unless_dead(subject: str, data: bytes) -> None:
        if not (dead.is_set() and "fra" in f"{subject} {data!r}"):
            await publish(subject, data)

    monkeypatch.setattr(bus, "publish", unless_dead)
    configs = settings("fra", public, FRANKFURT), settings("lhr", public, LONDON)
    async with fleet(*configs, bus=bus) as (directory, _), served(directory, bus) as at:
        watched = Watched(at.url, tmp_path, OPERATOR)
        await watched.begin()
        dead.set()
        said: dict[str, Any] = {"lost": []}
        async with asyncio.timeout(60):
            while not said["lost"]:
                await asyncio.sleep(0.2)
                said = (await watched.get("/v1/pops")).json()
        assert [row["pop"] for row in said["lost"]] == ["fra"] and [row["pop"] for row in said["pops"]] == ["lhr"]
        assert await watched.fire('PopLost{pop="fra"}', 'PopLost{pop="lhr"}') == [True, False]


def test_without_a_fault_nothing_is_named(tmp_path: Path) -> None:
    async def watch(pop: Watched) -> None:
        await pop.begin()
        await talk(RealtimeCaller(pop.url, "quiet", seed=1), 1, "hours", "parking")
        assert not set(await pop.culprits()) - {"loop"}, "a slow machine's event loop may be late"
        alerts = [f'TurnsWaitForStage{{stage="{each}"}}' for each in STAGES]
        assert not any(await pop.fire("TurnsMissed", "CallersLosePackets", "EngineDown", "KvCacheFull", *alerts))

    with pop(tmp_path, ENGINES) as its:
        asyncio.run(watch(its))
