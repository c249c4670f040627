"""Calls of a probe to servers that answer, refuse, or are not there."""

import asyncio
import socket
import time
from http import HTTPStatus

import pytest
from msgspec.structs import replace

from latency_probes.realtime import origin
from tests.latency_probes.fake_server import Script, fake_server
from tests.probe.series import series
from voicepipe.config.probe_config import ProbeConfig, ProbedConfig, ProbeSection
from voicepipe.probe.probe_call import probed
from voicepipe.probe.probe_targets import ProbeQuestion, ProbeSeries, questions
from voicepipe.probe.verdict import ProbeVerdict

PATIENT = ProbeSection(unsure_ms=600_000)
[QUESTION] = questions(ProbeConfig(targets=(ProbedConfig(name="eu", url="http://x"),)))


async def call(its: ProbeSeries, probe: ProbeSection = PATIENT, question: ProbeQuestion = QUESTION) -> ProbeVerdict:
    return await probed(its, question, probe, lambda lag_s: None)


async def test_a_server_that_answers() -> None:
    async with fake_server(Script(heard="when do you open on sunday")) as url:
        lags: list[float] = []
        seen = await probed(series(origin(url), budget_ms=60_000), QUESTION, PATIENT, lags.append)
    assert (seen.fault, seen.right, seen.words_wrong) == (None, True, 0.0) and seen.sure
    assert seen.heard_gap_s and seen.setup_s and len(lags) == 1


async def test_a_server_that_refuses_says_why() -> None:
    async with fake_server(Script(refuses=HTTPStatus.SERVICE_UNAVAILABLE)) as url:
        assert (await call(series(origin(url))))[1:3] == ("refused", "http_503")


@pytest.mark.parametrize("by", ["websocket", "webrtc"])
async def test_nobody_is_there(by: str) -> None:
    assert (await call(series("http://127.0.0.1:9", by=by)))[:3] == ("fra1", "connect", "")


async def test_a_name_without_an_address() -> None:
    for by in ("websocket", "webrtc", "sip"):
        assert (await call(series("http://nowhere.invalid", by=by))).fault == "resolve", by


async def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        seen = await call(series(url), ProbeSection(dial_s=0.2, unsure_ms=600_000))
        assert (seen.fault, seen.sure) == ("connect", True) and "not up within 0.2 s" in seen.says
        seen = await call(series(f"http://127.0.0.1:{9}", by="sip"), ProbeSection(dial_s=0.2, unsure_ms=600_000))
        assert seen.fault == "connect", "by telephone"


async def test_a_secret_that_is_missing_is_no_fault_of_the_pops() -> None:
    seen = await call(series(key_env="NOT_SET_ANYWHERE"))
    assert (seen.fault, seen.stage) == ("failed", "probe") and "NOT_SET_ANYWHERE" in seen.says


async def test_a_mistake_of_ours_ends_no_other_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*args: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr("voicepipe.probe.probe_call.converse", broken)
    assert (await call(series()))[1:3] == ("failed", "probe")


async def test_a_call_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless(*args: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("voicepipe.probe.probe_call.converse", endless)
    assert (await call(series(), replace(PATIENT, limit_s=0))).fault == "ended"


async def test_a_process_that_is_late_is_not_sure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        calling = asyncio.create_task(call(series(url), ProbeSection(dial_s=1.0, unsure_ms=200)))
        await asyncio.sleep(0.2)
        until = time.perf_counter() + 0.7
        while time.perf_counter() < until:
            pass
        assert not (await calling).sure
