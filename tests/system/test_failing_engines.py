"""Whole calls on a PoP whose engines hang: what callers hear and when, and what the PoP says of itself."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import voicepipe.pop.pop
from tests.support.faulty import LIMIT_S, Fault, FaultyAsr, FaultyLlm, FaultyTts, now
from tests.support.scenario import Says, Scenario, ScenarioLine, told
from tests.support.scripted import ScriptedVad
from tests.support.waiting import until
from voicepipe.call.recogniser_timing import time_recogniser
from voicepipe.call_settings import CallSettings
from voicepipe.config import Config, LadderConfig
from voicepipe.config.agent_store import AgentStore
from voicepipe.config.pop_config import with_slots
from voicepipe.conversation.events import CallEvent
from voicepipe.engines.base import Engines, Prompt
from voicepipe.pop.pop import Pop
from voicepipe.tools.tool_runner import ToolRunner

pytestmark = pytest.mark.virtual_time
AGENT = """
name = "front-desk"
greeting = "Hello."
acknowledgement = "One moment."
fallback = "I have a problem."
not_understood = ["Pardon?"]
no_input = []
"""
LADDER = LadderConfig()
ASKED_MS = 1500
"""The caller speaks from 1 s on, and for so long."""


def nobody() -> bool:
    return False


class Site:
    """A PoP, its engines' faults, and the calls on it."""

    def __init__(self, folder: Path) -> None:
        (folder / "front-desk.toml").write_text(AGENT)
        self.hearing, self.thinking, self.voice = Fault(), Fault(), Fault()
        engines = Engines(
            ScriptedVad(), FaultyAsr(self.hearing, "when are you open"), FaultyLlm(self.thinking), FaultyTts(self.voice)
        )
        self.pop = Pop(with_slots(Config()), AgentStore(folder), engines, ToolRunner())
        self.pop.serving.set()

    @property
    def status(self) -> str:
        return str(self.pop.health().status)

    async def call(self, **settings: Any) -> "Heard":
        """A caller who asks once, 1 s after the answer. Raises Refused."""
        scenario = Scenario("", [], [Says(1000, ASKED_MS)], 14_000)
        line, story = ScenarioLine(scenario), list[tuple[float, str]]()
        agent = self.pop.agent(None)
        changed = msgspec.structs.replace(CallSettings.of(agent), **settings)

        def note(event: CallEvent) -> None:
            if words := told(event):
                story.append((line.now_ms(), words))

        with self.pop.admit(self.pop.tenant(None), agent) as slot:
            await slot.open(line, changed, note).run()
        return Heard(line, story)


class Heard:
    def __init__(self, line: ScenarioLine, story: list[tuple[float, str]]) -> None:
        self.said = [words.partition(": ")[2] for _, words in story if words.startswith("agent (")]
        self.words = [words for _, words in story]
        self.greeted = any(at < 1000 and level > -45 for at, level in line.sent)
        ended = 1000 + ASKED_MS
        self.gap_ms = next((at - ended for at, level in line.sent if at >= ended and level > -45), None)
        """From the end of what the caller said to the first sound."""


def clock() -> float:
    """As `now`; 0 before the test begins: a PoP looks at its clock when it is made."""
    with suppress(RuntimeError):
        return now()
    return 0.0


@pytest.fixture(name="site")
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(voicepipe.pop.pop, "time", SimpleNamespace(time=time.time, monotonic=clock))
    return Site(tmp_path)


@contextmanager
def rehearsing(site: Site) -> Iterator[None]:
    running = asyncio.ensure_future(site.pop.tts_cache.run())
    try:
        yield
    finally:
        running.cancel()


async def test_who_calls_while_the_voice_hangs_is_greeted_and_hears_that_there_is_trouble(site: Site) -> None:
    with rehearsing(site):
        await asyncio.sleep(1)
        site.voice.begin()
        heard = await site.call()
    assert heard.greeted
    assert heard.said == ["Hello.", "One moment. I have a problem."]
    assert heard.gap_ms is not None and heard.gap_ms < 2000


@pytest.mark.parametrize("own", [{"speed": 1.4}, {"voice": "another"}])
async def test_in_trouble_another_speed_or_voice_is_better_than_silence(site: Site, own: dict[str, Any]) -> None:
    with rehearsing(site):
        await asyncio.sleep(1)
        site.voice.begin()
        heard = await site.call(**own)
    assert heard.said[-1] == "One moment. I have a problem."
    assert heard.gap_ms is not None and heard.gap_ms < 2000


async def test_at_the_very_first_turn_a_recogniser_that_hangs_is_not_waited_for_longer_than_later(site: Site) -> None:
    await time_recogniser(site.pop.engines, nobody)
    site.hearing.begin()
    heard = await site.call()
    assert heard.said == ["Hello.", "Pardon?"]
    assert heard.gap_ms is not None and heard.gap_ms < LADDER.words_ms + 500


async def test_a_recogniser_that_hangs_at_once_is_known_to_nobody(site: Site) -> None:
    site.hearing.begin()
    await time_recogniser(site.pop.engines, nobody)
    assert site.pop.engines.patience.ms(LADDER.words_ms, LADDER.fallback_ms) == LADDER.fallback_ms


async def test_what_a_pop_says_to_itself_gives_way_to_the_first_caller(site: Site) -> None:
    began = now()
    await time_recogniser(site.pop.engines, lambda: now() > began + 0.1)
    assert now() < began + 0.5, "the sentence takes longer, and has a decoder for as long"
    assert site.pop.engines.patience.ms(LADDER.words_ms, LADDER.fallback_ms) == LADDER.fallback_ms


@pytest.mark.parametrize(("which", "name"), [("hearing", "asr"), ("thinking", "llm"), ("voice", "tts")])
async def test_a_hang_is_heard_of_told_with_its_engine_and_over_by_itself(site: Site, which: str, name: str) -> None:
    fault: Fault = getattr(site, which)
    with rehearsing(site):
        await time_recogniser(site.pop.engines, nobody)
        assert (await site.call()).said == ["Hello.", "You said when are you open."], "all is well"
        assert site.status == "ok" and not site.pop.health().down
        fault.begin()
        call = asyncio.ensure_future(site.call())
        await until(lambda: site.status == "engine_down", 1 + ASKED_MS / 1000 + LIMIT_S + 2)
        assert set(site.pop.health().down) == {name}
        await asyncio.sleep(2)
        assert site.pop.health().down[name] >= 2
        heard = await call
        assert heard.gap_ms is not None and heard.gap_ms < LADDER.words_ms + 500
        fault.end()
        await until(lambda: site.status == "ok", 30)
        assert not site.pop.health().down


async def test_a_model_that_never_reads_an_agent_does_not_keep_later_edits_out(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    edits, warmed = ["first", "second"], list[str]()

    async def never(prompt: Prompt) -> None:
        warmed.append(prompt.agent.name if prompt.agent else "")
        await asyncio.Event().wait()

    async def reread(refresh: Callable[..., object], *agents: object) -> bool:
        return not agents and bool(edits and edits.pop())

    monkeypatch.setattr(asyncio, "to_thread", reread)
    monkeypatch.setattr(site.pop.engines.llm, "warm", never)
    rereading = asyncio.ensure_future(site.pop.prepared.reread())
    await asyncio.sleep(5)
    assert not edits and warmed == ["front-desk"] * 2
    await asyncio.sleep(600)
    rereading.cancel()
    assert caplog.text.count("agent front-desk is not warmed up") == 1, "the first was replaced"
