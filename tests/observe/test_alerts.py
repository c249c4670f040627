"""The alerts: Prometheus' own tool reads and tests them, and they ask for nothing that is not there."""

import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.observe.test_metrics import HEALTH, POP
from tests.support.fake_nvml import FakeDriver, FakeGpu
from voicepipe.config.probe_config import ProbeConfig
from voicepipe.directory.server.fleet_metrics import FleetMetrics
from voicepipe.observe.metrics import Metrics
from voicepipe.probe.probe_metrics import ProbeMetrics
from voicepipe.records.records import Records
from voicepipe.records.store import Spool

ALERTS = Path(__file__).parents[2] / "pops" / "alerts"
RULES = (ALERTS / "voicepipe.rules.yml").read_text()
RECORDS = SimpleNamespace(
    writer=SimpleNamespace(failing=""), deliveries=SimpleNamespace(spool=Spool(0, None, None), failed=0)
)
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed (apt install prometheus)")


@promtool
@pytest.mark.parametrize("asked", [("check", "rules", "voicepipe.rules.yml"), ("test", "rules", "voicepipe.test.yml")])
def test_promtool_agrees(asked: tuple[str, ...]) -> None:
    said = subprocess.run(("promtool", *asked), cwd=ALERTS, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr


def told(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of all series that PoPs, directories and probes have, without vLLM's."""
    FakeDriver([FakeGpu()]).install(monkeypatch)
    metrics = Metrics(POP, lambda: HEALTH)
    metrics.others.append(partial(Records.read_metrics, cast(Records, RECORDS)))
    text = (
        metrics.read("")()[0]
        + FleetMetrics("d").read("", [], 0, False)()[0]
        + ProbeMetrics(ProbeConfig()).read("")()[0]
    )
    return {
        name + suffix
        for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text.decode(), re.MULTILINE)
        for suffix in SUFFIXES.get(kind, ("",))
    }


def test_they_ask_for_metrics_that_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = set(re.findall(r"(?<!:)\bvoicepipe_\w+\b(?!:)", RULES))
    known = told(monkeypatch)
    assert asked and asked <= known, asked - known


def test_each_says_what_to_do() -> None:
    for alert in RULES.split("- alert: ")[1:]:
        assert all(key in alert for key in ("do: ", "summary: ", "severity: ")), alert
