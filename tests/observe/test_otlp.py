"""Whole PoPs send their traces to a collector, or to where none answers."""

import json
import os
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import websockets

from latency_probes.conversation import converse
from latency_probes.own_server import started
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from tests.observe.otlp_receiver import Receiver, attributes, receiver
from tests.observe.prometheus import Prometheus, installed, scraping
from tests.support.ports import free_port
from tests.support.spoken import spoken
from tests.support.waiting import PATIENT_POP, until

pytestmark = pytest.mark.e2e

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def collector() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@pytest.fixture(scope="module")
def pop(collector: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started(command(tmp_path_factory.mktemp("pop"), collector.url), environment()) as running:
        yield running.url


def command(folder: Path, endpoint: str) -> tuple[str, ...]:
    """Starts a PoP that sends its traces there."""
    file = folder / "traced.toml"
    file.write_text(f'[traces]\nendpoint = "{endpoint}"\nheaders_env = "COLLECTOR_HEADERS"\n')
    return (*PATIENT_POP, "--config", str(file))


def environment() -> dict[str, str]:
    return {**os.environ, "COLLECTOR_HEADERS": "authorization=Bearer%20sesame", "no_proxy": "127.0.0.1"}


async def asked_aloud(url: str) -> Any:
    """What a caller heard who asked one question."""
    caller = RealtimeCaller(url, "quiet", seed=1)
    record = await converse(caller, CallPlan(0, "quiet", (Turn("e2e", spoken("hours")[0]),)), seed=1)
    assert not record.failure
    return record


async def typed(url: str, **headers: str) -> None:
    """A call in which a client types a question, and hangs up once it was answered."""
    address = f"ws{url.removeprefix('http')}/v1/realtime"
    async with websockets.connect(address, additional_headers=headers) as call:
        said = [{"type": "input_text", "text": "When are you open?"}]
        item = {"type": "message", "role": "user", "content": said}
        for event in ({"type": "conversation.item.create", "item": item}, {"type": "response.create"}):
            await call.send(json.dumps(event))
        async for message in call:
            if json.loads(message)["type"] == "response.done":
                break


async def test_a_collector_gets_the_spans_of_a_call(pop: str, collector: Receiver) -> None:
    await asked_aloud(pop)
    await until(lambda: collector.named("call"))
    [call], turn = collector.named("call"), collector.named("turn")[0]
    assert turn.trace_id == call.trace_id and turn.parent_span_id == call.span_id
    below = [span for span in collector.spans if span.parent_span_id == turn.span_id]
    assert {"endpointing", "asr", "chat", "tts", "playout", "speaking"} <= {span.name for span in below}
    latency = attributes(turn.attributes)["voicepipe.turn.latency_ms"]
    [playout] = (span for span in below if span.name == "playout")
    assert (playout.end_time_unix_nano - turn.start_time_unix_nano) / 1e6 == pytest.approx(latency, abs=0.1)
    assert abs(turn.start_time_unix_nano / 1e9 - time.time()) < 600, "by the clock of the wall"
    about = attributes(call.attributes)
    assert about["voicepipe.call.end"] == "caller" and about["gen_ai.agent.name"] == "front-desk"
    [resource] = collector.resources
    assert ("service.name", "voicepipe") in resource and ("service.instance.id", "local") in resource
    assert collector.keys == {"Bearer sesame"}
    assert "open" not in str(collector.spans), "neither the question nor the answer"


async def test_a_call_joins_the_trace_that_its_request_names(pop: str, collector: Receiver) -> None:
    await typed(pop, traceparent=f"00-{TRACE}-{PARENT}-01")

    def ours() -> list[Any]:
        return [span for span in collector.spans if span.trace_id.hex() == TRACE]

    await until(lambda: any(span.name == "call" for span in ours()))
    [call] = (span for span in ours() if span.name == "call")
    assert call.parent_span_id.hex() == PARENT and any(span.name == "reply" for span in ours())


@pytest.fixture
def prometheus(pop: str, tmp_path: Path) -> Iterator[Prometheus]:
    """One that scrapes the PoP."""
    with scraping(tmp_path, "500ms", {"voicepipe": [pop.removeprefix("http://")]}) as running:
        yield running


@installed
async def test_a_prometheus_leads_from_a_latency_to_its_trace(
    pop: str, collector: Receiver, prometheus: Prometheus
) -> None:
    await asked_aloud(pop)
    latency = "voicepipe_turn_latency_seconds_bucket"
    await until(lambda: prometheus.exemplars(latency))
    await until(lambda: prometheus.exemplars(latency) <= {span.trace_id.hex() for span in collector.named("turn")})


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("dead", ["refuses", "is silent"])
async def test_a_collector_that_is_away_costs_callers_nothing(dead: str, silent: str, tmp_path: Path) -> None:
    endpoint = silent if dead == "is silent" else f"http://127.0.0.1:{free_port()}"
    with started(command(tmp_path, endpoint), environment()) as running:
        await asked_aloud(running.url)
        dropped = "voicepipe_trace_spans_dropped_total"

        def lost() -> float:
            with urllib.request.urlopen(f"{running.url}/metrics") as answer:
                lines = answer.read().decode().splitlines()
            [line] = (line for line in lines if line.startswith(dropped))
            return float(line.rpartition(" ")[2])

        await until(lost)
        complaints = running.log.read_text().count("opentelemetry")
        assert 1 <= complaints <= 3
        ends = time.monotonic()
    assert time.monotonic() - ends < 8, "the PoP ends"


def test_a_pop_says_at_once_that_headers_are_missing(tmp_path: Path) -> None:
    bare = {name: value for name, value in environment().items() if name != "COLLECTOR_HEADERS"}
    ended = subprocess.run(command(tmp_path, "http://127.0.0.1:4318"), capture_output=True, text=True, env=bare)
    assert (
        ended.returncode
        and "traces.headers_env: the environment variable COLLECTOR_HEADERS is not set here" in ended.stderr
    )
