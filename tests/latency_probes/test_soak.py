"""Soaks: what counts of them, and callers that misbehave and leave nothing behind on our side."""

import asyncio
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from latency_probes import clips, misbehaving, soak
from latency_probes.misbehaving import SHUT_OUT, Site, dies, floods, stalls
from latency_probes.plan import CallPlan
from latency_probes.realtime import RealtimeCaller
from latency_probes.soak import Reading, Soak, Soaked, counted
from latency_probes.soak_report import breaches, grown, show
from tests.latency_probes.fake_server import Script, fake_server


def soaked(hours: float = 2.0, mb_an_hour: float = 0.0, tasks_an_hour: float = 0.0) -> Soaked:
    """Half an hour in which memory fills, then this growth, with a little noise."""
    noise = np.random.default_rng(1)
    readings = []
    for at in range(0, int(hours * 3600), 10):
        memory = 100 + min(at, 1800) / 20 + mb_an_hour * at / 3600 + noise.normal(0, 0.5)
        tasks = 50 + tasks_an_hour * at / 3600 + noise.normal(0, 3)
        readings.append(Reading(at, {"rss_kb": 1024 * memory, "tasks": tasks, "loop_lag_p99_ms": 3.0}))
    figures = {"tasks": 10.0, "rss_kb": 100 * 1024.0}
    return Soaked(hours * 3600, 18, hours * 3600, figures, figures, readings, gaps={"sip": [150.0, 170.0]})


def test_the_first_half_hour_does_not_count() -> None:
    assert counted(soaked(2.0))[0].at == 1800
    assert counted(soaked(0.2))[0].at == 180, "the first quarter of a short one"
    found = grown(soaked(2.0), "rss_kb")
    assert found
    assert abs(found.value) < 0.3


def test_what_grows_is_told() -> None:
    assert breaches(soaked()) == []
    (line,) = breaches(soaked(mb_an_hour=5))
    assert "memory may grow by" in line
    leaks = soaked(tasks_an_hour=20)
    assert breaches(leaks) == [], "more calls at its end than at its beginning are no leak"
    leaks.after = {**leaks.after, "tasks": 45.0}
    (line,) = breaches(leaks)
    assert line.startswith("tasks grow")
    assert line.endswith("35 are left when all calls are over")


def test_a_call_that_never_ends_is_told() -> None:
    seen = soaked()
    seen.after = {**seen.after, "calls": 2.0, "decoders": 0.0, "codecs": 1.0}
    assert breaches(seen) == [
        "2 calls are left when all calls are over",
        "1 Opus coders in use are left when all calls are over",
    ]


def test_a_server_that_tells_nothing_at_the_end_is_told() -> None:
    seen = soaked()
    seen.after = {}
    (line,) = breaches(seen)
    assert line.startswith("the server told nothing of itself")


def test_lost_turns_and_failed_calls_are_told() -> None:
    seen = soaked()
    seen.failed, seen.failures, seen.lost = 2, ["refused"], {"sip": 1, "webrtc": 2}
    seen.losses = ["7 minutes in, by sip: 'hello', heard as '', without an answer"]
    assert breaches(seen) == [
        "2 well-behaved calls failed, as: refused",
        "3 turns of well-behaved callers were lost:",
        "  7 minutes in, by sip: 'hello', heard as '', without an answer",
    ]


def test_the_table_tells_growth_with_its_interval() -> None:
    console = Console(width=200, file=StringIO(), record=True)
    assert show(soaked(), console) == []
    shown = console.export_text()
    for expected in ("early", "memory, MB", " to +", "sip", "18 slots"):
        assert expected in shown


@pytest.fixture
def hello(monkeypatch: pytest.MonkeyPatch) -> clips.Utterance:
    """The only thing that callers say."""
    quiet = [item for item in clips.load(["finished"]) if item.noise == "quiet"]
    found = next(item for item in quiet if item.text == "hello good afternoon")
    monkeypatch.setattr(clips, "load", lambda kinds=clips.KINDS: [found])
    return found


@pytest.mark.usefixtures("hello")
async def test_calls_of_every_kind_are_placed_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "PAUSE_S", (0.0, 0.1))
    monkeypatch.setattr(soak, "KINDS", {"behaves": 0.01, "dies": 0.99})
    monkeypatch.setattr(misbehaving, "DIES_S", (0.0, 0.2))
    async with fake_server(Script(greeting=False, reply_s=0.1)) as url:

        def caller(plan: CallPlan) -> RealtimeCaller:
            return RealtimeCaller(url, plan.noise, 1)

        seen = await Soak(Site(url), {"websocket": caller}, 3, 2.0, lambda seen: None).run()
    assert seen.calls["dies"]
    assert seen.readings
    assert len(seen.gaps["websocket"]) == 1, "each door is tried first, by a caller who behaves well"
    assert seen.after["fds"] == 9


@pytest.mark.usefixtures("hello")
async def test_of_a_lost_turn_it_is_told_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latency_probes.conversation.MISSED_S", 0.5)
    async with fake_server(Script(greeting=False, answers=False)) as url:
        soaking = Soak(
            Site(url), {"websocket": lambda plan: RealtimeCaller(url, plan.noise, 1)}, 1, 0.1, lambda seen: None
        )
        seen = await soaking.run()
    assert "without an answer; " in seen.losses[0]
    assert " conversation.item.input_audio_transcription.completed" in seen.losses[0]


@pytest.mark.parametrize("kind", ["dies", "stalls", "floods"])
async def test_who_misbehaves_ends(kind: str, hello: clips.Utterance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(misbehaving, "DIES_S", (0.1, 0.2))
    monkeypatch.setattr(misbehaving, "STALLS_S", (0.1, 0.2))
    monkeypatch.setattr(misbehaving, "FLOOD_S", 0.1)
    rng = np.random.default_rng(1)
    before = asyncio.all_tasks()
    async with fake_server(Script()) as url:
        try:
            if kind == "dies":
                question = await asyncio.to_thread(clips.speech, hello, 1)
                await dies(RealtimeCaller(url, "quiet", 1), question, rng)
            elif kind == "stalls":
                await stalls(Site(url), rng)
            else:
                await floods(Site(url), rng)
        except SHUT_OUT:
            pass  # The fake server knows no nonsense and ends the call.
    await asyncio.sleep(0.1)
    left = [task for task in asyncio.all_tasks() - before if "fake_server" not in repr(task)]
    assert left == []
