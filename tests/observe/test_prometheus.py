"""Debian's Prometheus scrapes a whole PoP, and its promtool reads what the PoP says."""

import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from latency_probes.conversation import converse
from latency_probes.own_server import own_server
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from tests.observe.prometheus import Prometheus, installed, scraping
from tests.support.spoken import spoken
from tests.support.waiting import PATIENT_POP, until

pytestmark = [pytest.mark.e2e, installed]


@pytest.fixture(scope="module")
def pop() -> Iterator[str]:
    with own_server(PATIENT_POP) as url:
        yield url


@pytest.fixture
def prometheus(pop: str, tmp_path: Path) -> Iterator[Prometheus]:
    """One that scrapes the PoP."""
    with scraping(tmp_path, "500ms", {"voicepipe": [pop.removeprefix("http://")]}) as running:
        yield running


async def test_a_prometheus_knows_how_late_the_turns_were_and_what_they_waited_for(
    pop: str, prometheus: Prometheus
) -> None:
    caller = RealtimeCaller(pop, "quiet", seed=1)
    record = await converse(caller, CallPlan(0, "quiet", (Turn("e2e", spoken("hours")[0]),)), seed=1)
    assert not record.failure

    async def value(query: str) -> float:
        await until(lambda: prometheus.asked(query))
        [found] = prometheus.asked(query).values()
        return found

    assert await value("up") == 1
    await until(lambda: prometheus.asked('voicepipe_calls_total{ingress="websocket"} == 1'))
    latency = await value("histogram_quantile(0.95, sum by (le, pop) (voicepipe_turn_latency_seconds_bucket))")
    assert 0.1 < latency <= 5
    waited = await value("sum(voicepipe_turn_wait_seconds_sum)")
    assert waited == pytest.approx(await value("sum(voicepipe_turn_latency_seconds_sum)"), abs=0.001)
    assert await value("sum(voicepipe_calls_in_progress)") == 0


def test_promtool_finds_nothing_to_mend(pop: str) -> None:
    with urllib.request.urlopen(f"{pop}/metrics") as answer:
        checked = subprocess.run(["promtool", "check", "metrics"], input=answer.read(), capture_output=True)
    assert checked.returncode == 0, (checked.stdout + checked.stderr).decode()
