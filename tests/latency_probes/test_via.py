"""Callers who ask a directory first: whom they call, whom next, and what is kept of it."""

import asyncio
import io
import json
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from latency_probes import by_pop, clips, via
from latency_probes.__main__ import main
from latency_probes.plan import CallPlan, Plan
from latency_probes.realtime import RealtimeCaller
from latency_probes.records import CallResult
from latency_probes.run import Run, Runner
from latency_probes.via import Via
from latency_probes.webrtc import WebRtcCaller
from tests.directory.fleets import FRANKFURT, LONDON, LONG_S, fleet, public_key, served, settings
from tests.latency_probes.fake_directory import fake_directory
from tests.latency_probes.fake_server import Script, fake_server
from tests.latency_probes.test_report import run_of, turn
from voicepipe.audio import opus
from voicepipe.base.errors import ProbeError
from voicepipe.directory.bus import MemoryBus

opus.load()
NOBODY = "ws://127.0.0.1:9/v1/realtime"
ONE_CALL = Plan((), (CallPlan(7, "quiet", ()),))


async def held(directory: Via) -> Run:
    def caller(plan: CallPlan) -> RealtimeCaller:
        return RealtimeCaller(directory.url, plan.noise, 1, via=directory)

    return await Runner(caller, 1, 1, lambda: None).run(ONE_CALL)


async def test_the_first_candidate_is_called_with_its_token_and_what_was_said_is_kept() -> None:
    async with (
        fake_server(Script()) as pop,
        fake_directory([("fra", pop), ("lhr", NOBODY)], degraded=True) as directory,
    ):
        told = Via(directory.url, "websocket", "k-acme", "clinic", (50.1, -8.7), {"fra": 12.5})
        run = await held(told)
    assert directory.keys == ["bearer k-acme"]
    assert directory.asked == [
        {
            "kind": "websocket",
            "rtt_ms": {"fra": 12.5},
            "tried": [],
            "require": {"agent": "clinic"},
            "place": {"latitude": 50.1, "longitude": -8.7},
        }
    ]
    (call,) = run.routed
    assert (call.number, call.pop, call.turn_ms_est, call.degraded) == (7, "fra", 210.5, True)
    assert (call.asked, call.tries) == (1, 1)
    assert call.created_ms is not None and call.greeting_ms is not None
    assert 0 < call.created_ms < call.greeting_ms
    assert run.setups["session.created"] == [call.created_ms]
    assert run.setups["greeting's first sound"] == [call.greeting_ms]


async def test_a_candidate_that_refuses_or_does_not_answer_is_followed_by_the_next_one() -> None:
    async with (
        fake_server(Script(refuses=HTTPStatus.SERVICE_UNAVAILABLE)) as full,
        fake_server(Script()) as pop,
        fake_directory([("gone", NOBODY), ("full", full), ("fra", pop)]) as directory,
    ):
        run = await held(Via(directory.url, "websocket"))
    assert len(directory.asked) == 1, "without asking again"
    assert [(call.pop, call.asked, call.tries) for call in run.routed] == [("fra", 1, 3)]


async def test_a_candidate_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(via, "LET_IN_S", 1.0)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server, fake_server(Script()) as pop:
        port = server.sockets[0].getsockname()[1]
        async with fake_directory([("mute", f"ws://127.0.0.1:{port}"), ("fra", pop)]) as directory:
            run = await held(Via(directory.url, "websocket"))
    assert [(call.pop, call.tries) for call in run.routed] == [("fra", 2)]


async def test_where_all_fail_the_directory_is_asked_once_more_without_those_that_were_tried() -> None:
    gone = [("a", NOBODY), ("b", NOBODY)]
    async with fake_server(Script()) as pop, fake_directory(gone, [("fra", pop)]) as directory:
        run = await held(Via(directory.url, "websocket"))
    assert directory.asked[1]["tried"] == ["a", "b"]
    assert [(call.pop, call.asked, call.tries) for call in run.routed] == [("fra", 2, 3)]

    async with fake_directory(gone, [("c", NOBODY)]) as directory:
        with pytest.raises(ProbeError, match="no PoP that the directory names takes the call: a: .*, b: .*, c: "):
            await held(Via(directory.url, "websocket"))
    async with fake_directory(gone, (503, "No PoP that has not been tried answers.")) as directory:
        with pytest.raises(ProbeError, match="has not been tried answers.*before that a: no server"):
            await held(Via(directory.url, "websocket"))


@pytest.mark.parametrize("make", [RealtimeCaller, WebRtcCaller])
async def test_a_directory_that_is_not_there_or_refuses(make: Any) -> None:
    with pytest.raises(ProbeError, match="no server answers at http://127.0.0.1:9"):
        await make("", "quiet", 1, via=Via("127.0.0.1:9", "websocket")).dial()
    async with fake_directory((401, "This directory wants a key"), []) as directory:
        for sentence in ("--key .*wants a key", "names no PoP"):
            with pytest.raises(ProbeError, match=sentence):
                await make("", "quiet", 1, via=Via(directory.url, "websocket")).dial()


def test_calls_are_counted_by_pop() -> None:
    silence = turn(pop="lhr", outcome="none", gap_ms=None)
    run = run_of(turn(pop="fra", gap_ms=180.0), turn(pop="lhr", gap_ms=260.0), silence)
    run.routed = [
        CallResult(1, "fra", 200.0, False, 1, 1, 20.0, 50.0),
        CallResult(2, "lhr", 240.0, True, 2, 3, 40.0, None),
    ]
    everything, fra, lhr = by_pop.rows(run)
    assert (everything.pop, everything.calls, everything.gap_p50, everything.created_p50) == ("all", 2, 220.0, 30.0)
    assert (fra.pop, fra.calls, fra.tried_others, fra.asked_twice, fra.degraded) == ("fra", 1, 0, 0, 0)
    assert (lhr.tried_others, lhr.asked_twice, lhr.degraded, lhr.greeting_p50, lhr.gap_p50) == (1, 1, 1, None, 260.0)
    output = io.StringIO()
    by_pop.show([everything, fra, lhr], Console(file=output, width=170))
    assert "fra" in output.getvalue() and "20/20" in output.getvalue()
    by_pop.show([], Console(file=io.StringIO()))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--via", "http://d", "http://pop"], "--via says where to call"),
        (["--via", "http://d", "--self"], "--via says where to call"),
        (["--via", "http://d", "--by", "sip"], "directories place calls by websocket and webrtc"),
        (["--via", "http://d", "--by", "twilio"], "call a PoP's own address"),
        (["--via", "http://d", "--soak", "1"], "of one PoP"),
        (["http://pop", "--place", "50,8"], "add --via"),
        (["--via", "http://d", "--place", "91,8"], "no place"),
        (["--via", "http://d", "--rtt", "fra1"], "no round trips"),
        (["--via", "http://127.0.0.1:9", "--calls", "1"], "no server answers at http://127.0.0.1:9"),
    ],
)
def test_what_cannot_be_asked(options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 2
    assert sentence in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.e2e
@pytest.mark.parametrize("by", ["websocket", "webrtc"])
async def test_calls_by_a_real_directory_go_to_the_pop_that_is_near(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hello = next(item for item in clips.load(["finished"]) if item.text == "hello good afternoon")
    monkeypatch.setattr(clips, "load", lambda kinds=clips.KINDS: [hello] if "finished" in kinds else [])
    public, bus, file = await asyncio.to_thread(public_key, tmp_path), MemoryBus(), tmp_path / "report.json"
    configs = [settings("fra", public, FRANKFURT), settings("lhr", public, LONDON)]
    async with asyncio.timeout(LONG_S), fleet(*configs, bus=bus) as (directory, _), served(directory, bus) as at:
        options = ["--via", at.url, "--key", "k-acme", "--by", by, "--place", "51.5,-0.1", "--rtt", "lhr=3,fra=20"]
        status = await asyncio.to_thread(main, [*options, "--set", "finished", "--calls", "1", "--json", str(file)])
    assert status in (0, 1), "scripted engines answer what they like"
    report = json.loads(await asyncio.to_thread(file.read_text))["figures"]
    (call,), (row,) = report["run"]["routed"], report["pops"]
    assert call["pop"] == row["pop"] == "lhr"
    assert call["turn_ms_est"] > 43
    assert 0 < call["created_ms"]
    assert {turn["pop"] for turn in report["run"]["turns"]} == {"lhr"}
