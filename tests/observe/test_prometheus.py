"""Debian's Prometheus scrapes a whole PoP, and its promtool reads what the PoP says."""

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from latency_probes.conversation import converse
from latency_probes.own_server import own_server
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from tests.ports import free_port
from tests.spoken import spoken
from tests.waiting import PATIENT_POP, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not shutil.which("prometheus"), reason="Prometheus is not installed (apt install prometheus)"),
]


@pytest.fixture(scope="module")
def pop() -> Iterator[str]:
    with own_server(PATIENT_POP) as url:
        yield url


@pytest.fixture
def prometheus(pop: str, tmp_path: Path) -> Iterator[str]:
    """The address of one that scrapes the PoP."""
    (tmp_path / "prometheus.yml").write_text(
        json.dumps(  # which is YAML, too
            {
                "global": {"scrape_interval": "500ms"},
                "scrape_configs": [{"job_name": "pop", "static_configs": [{"targets": [pop.removeprefix("http://")]}]}],
            }
        )
    )
    address = f"127.0.0.1:{free_port()}"
    places = "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}"
    with (tmp_path / "log").open("w") as log:
        running = subprocess.Popen(("prometheus", *places), cwd=tmp_path, stdout=log, stderr=log)
    try:
        yield f"http://{address}"
    finally:
        running.terminate()
        running.wait(30)


def asked(prometheus: str, query: str) -> dict[str, float]:
    """What PromQL's `query` gives now: by the labels of each series, as JSON; {} also while Prometheus is starting."""
    try:
        with urllib.request.urlopen(f"{prometheus}/api/v1/query?query={urllib.parse.quote(query)}") as answer:
            result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    except OSError:
        return {}
    return {json.dumps(series["metric"], sort_keys=True): float(series["value"][1]) for series in result}


async def test_a_prometheus_knows_how_late_the_turns_were_and_what_they_waited_for(pop: str, prometheus: str) -> None:
    caller = RealtimeCaller(pop, "quiet", seed=1)
    record = await converse(caller, CallPlan(0, "quiet", (Turn("e2e", spoken("hours")[0]),)), seed=1)
    assert not record.failure

    async def value(query: str) -> float:
        await until(lambda: asked(prometheus, query))
        [found] = asked(prometheus, query).values()
        return found

    assert await value("up") == 1
    await until(lambda: asked(prometheus, 'voicepipe_calls_total{ingress="websocket"} == 1'))
    latency = await value("histogram_quantile(0.95, sum by (le, pop) (voicepipe_turn_latency_seconds_bucket))")
    assert 0.1 < latency <= 5
    waited = await value("sum(voicepipe_turn_wait_seconds_sum)")
    assert waited == pytest.approx(await value("sum(voicepipe_turn_latency_seconds_sum)"), abs=0.001)
    assert await value("sum(voicepipe_calls_in_progress)") == 0


def test_promtool_finds_nothing_to_mend(pop: str) -> None:
    with urllib.request.urlopen(f"{pop}/metrics") as answer:
        checked = subprocess.run(["promtool", "check", "metrics"], input=answer.read(), capture_output=True)
    assert checked.returncode == 0, (checked.stdout + checked.stderr).decode()
