"""Two versions are on trial in a fleet, in virtual time: one is slower, one fails now and then. Whole calls go to the
PoPs that a directory names, and an operator is told which version is worse before more than its share has met it."""

import asyncio
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from random import Random
from types import SimpleNamespace

import msgspec
import pytest

import voicepipe.pop.pop
from tests.directory.fleets import SIGNER
from tests.support.faulty import now
from tests.support.scenario import Says, Scenario, ScenarioLine
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from tests.system.test_failing_engines import AGENT, clock
from voicepipe.base.errors import EngineStalled
from voicepipe.base.places import Place
from voicepipe.call_api import Grant
from voicepipe.call_settings import CallSettings
from voicepipe.commands.compare import tally_of, verdict
from voicepipe.config import Config, PopConfig
from voicepipe.config.agent_store import AgentStore
from voicepipe.config.directory_config import CanaryConfig
from voicepipe.config.fleet_config import FleetConfig
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.directory.reporter import Reporter
from voicepipe.directory.router import WantedCall
from voicepipe.directory.server.operator import row_of
from voicepipe.engines.base import Delta, Engines, Prompt
from voicepipe.observe.version_comparison import compared
from voicepipe.pop.pop import Pop
from voicepipe.tools.tool_runner import ToolRunner

pytestmark = pytest.mark.virtual_time
FRANKFURT = (50.1, 8.7)
TURNS, EVERY_MS, SPOKEN_MS = 10, 2500, 600
SLOWER_MS = 150
"""One question of the ten fails."""
CALLERS = 10
"""At a time."""
MOST_CALLS = 250


class Model(ScriptedLlm):
    """Half of its answers take 250 ms more. `unanswered`: the question of a call, from 1, that it
    does not answer; 0: none."""

    def __init__(self, slower_ms: float, unanswered: int) -> None:
        super().__init__()
        self._slower_ms, self._unanswered = slower_ms, unanswered

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        asked = sum(message.role == "user" for message in prompt.messages)
        if asked == self._unanswered:
            raise EngineStalled("the model sends nothing more")
        lots = Random(f"{now() * 1000 // EVERY_MS}")
        await asyncio.sleep((250 + lots.gauss(0, 20) + lots.choice((0, 250)) + self._slower_ms) / 1000)
        async for delta in super().generate(prompt):
            yield delta


def made(folder: Path, name: str, version: str, slower_ms: float = 0, unanswered: int = 0) -> Pop:
    config = Config(
        pop=PopConfig(id=name, version=version, slots=60, budget_ms=5000),
        fleet=FleetConfig(place=FRANKFURT, url=f"https://{name}.example"),
    )
    engines = Engines(
        ScriptedVad(), ScriptedAsr(["when are you open"] * 10_000), Model(slower_ms, unanswered), ScriptedTts()
    )
    pop = Pop(config, AgentStore(folder), engines, ToolRunner())
    pop.serving.set()
    return pop


@pytest.fixture(name="pops")
def _pops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Pop]:
    monkeypatch.setattr(voicepipe.pop.pop, "time", SimpleNamespace(time=time.time, monotonic=clock))
    (tmp_path / "front-desk.toml").write_text(AGENT)
    return {
        "fra1": made(tmp_path, "fra1", "1.0"),
        "fra2": made(tmp_path, "fra2", "1.1", slower_ms=SLOWER_MS),
        "fra3": made(tmp_path, "fra3", "1.2", unanswered=4),
    }


async def call(pop: Pop) -> None:
    says = [Says(1000 + EVERY_MS * number, SPOKEN_MS) for number in range(TURNS)]
    line = ScenarioLine(Scenario("", [], says, 1000 + EVERY_MS * TURNS))
    agent = pop.agent(None)
    with pop.admit(pop.tenant(None), agent) as seat:
        await seat.open(line, CallSettings.of(agent), lambda event: None).run()


class Trial:
    """Callers who ask the directory, and an operator who looks after each call."""

    def __init__(self, directory: Directory, pops: dict[str, Pop]) -> None:
        self.went: list[str] = []
        self.named: dict[str, tuple[int, str]] = {}
        """By version: after how many of its turns it was named, and how."""
        self._directory, self._pops = directory, pops

    async def caller(self, begins_s: float) -> None:
        await asyncio.sleep(begins_s)
        while len(self.named) < 2 and len(self.went) < MOST_CALLS:
            wanted = WantedCall(kind="websocket", place=Place(*FRANKFURT))
            placement = await self._directory.place(wanted, Grant(id="", tenant="local"))
            pop = placement.offers[0].pop
            self.went.append(pop)
            await call(self._pops[pop])
            self._look()

    def _look(self) -> None:
        rows = [msgspec.to_builtins(row_of(seen, hour=True), str_keys=True) for seen in self._directory.pops()]
        for version in {"1.1", "1.2"} - self.named.keys():
            comparison = compared(tally_of("1.0", rows), tally_of(version, rows))
            if comparison.is_worse:
                self.named[version] = comparison.turns[1], " ".join(verdict("1.0", version, comparison))


@pytest.mark.slow
async def test_a_worse_version_is_named_within_a_hundred_turns_and_gets_no_more_than_its_share(
    pops: dict[str, Pop],
) -> None:
    bus, canaries = MemoryBus(), [CanaryConfig(share=0.1, version=version) for version in ("1.1", "1.2")]
    directory = Directory(bus, SIGNER, Random(0), now, canaries)
    jobs = [asyncio.ensure_future(directory.run())]
    await asyncio.sleep(0)
    jobs += [asyncio.ensure_future(Reporter(bus, name, pop.condition, now).run()) for name, pop in pops.items()]
    await asyncio.sleep(2)
    trial = Trial(directory, pops)
    await asyncio.gather(*(trial.caller(2.0 * number) for number in range(CALLERS)))
    for job in jobs:
        job.cancel()
    turns, said = trial.named["1.1"]
    assert turns <= 100 and said.startswith(("1.1 is slower by 1", "1.1 is slower in the mean, by 1"))
    turns, said = trial.named["1.2"]
    assert turns <= 100 and said.startswith("1.2 fails more")
    for number in range(1, len(trial.went) + 1):
        for pop in ("fra2", "fra3"):
            assert trial.went[:number].count(pop) <= 0.1 * number + 1
