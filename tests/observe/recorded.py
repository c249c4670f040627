"""Which alerts fire where a fault goes on as it was recorded: two scrapes of a PoP, before and after, become series for
promtool, which grow on and on by as much."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

RULES = Path(__file__).parents[2] / "pops" / "alerts" / "voicepipe.rules.yml"
STEP_S, STEPS = 15, 160
A_MINUTE = 60 // STEP_S
"""Steps in which what was recorded happens once more."""
AT = "35m"
"""By then all alerts have had their time."""
GROW = ("counter", "histogram", "summary")

Scrape = Mapping[str, tuple[float, bool]]
"""By series as PromQL writes them: the value, and whether it grows."""


def scrape(text: str) -> Scrape:
    """What /metrics said."""
    found = {}
    for family in text_string_to_metric_families(text):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            labels = ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = (float(sample.value), family.type in GROW)
    return found


def series(before: Scrape, after: Scrape) -> list[dict[str, str]]:
    """As promtool takes them."""
    made = []
    for name, (value, grows) in after.items():
        start = before.get(name, (0.0, grows))[0]
        step = (value - start) / A_MINUTE
        made.append({"series": name, "values": f"{start}+{step}x{STEPS}" if grows else f"{value}x{STEPS}"})
    return made


def firing(before: Scrape, after: Scrape, folder: Path, *asked: str) -> list[bool]:
    """For each alert, as `TurnsLate{pop="fra1"}`: whether it fires. Raises AssertionError: promtool fails."""
    up = {"series": 'up{job="voicepipe",instance="pop"}', "values": f"1x{STEPS}"}
    inputs = [*series(before, after), up]
    return [_fires(inputs, alert, folder) for alert in asked]


def _fires(inputs: list[dict[str, str]], alert: str, folder: Path) -> bool:
    name, _, labels = alert.partition("{")
    selector = ",".join(filter(None, (f'alertname="{name}"', 'alertstate="firing"', labels.rstrip("}"))))
    asks = {"expr": f"count(ALERTS{{{selector}}}) > bool 0 or vector(0)", "eval_time": AT}
    for expected in (1, 0):
        case = asks | {"exp_samples": [{"labels": "{}", "value": expected}]}
        test = {"rule_files": [str(RULES)], "evaluation_interval": f"{STEP_S}s",
                "tests": [{"interval": f"{STEP_S}s", "input_series": inputs, "promql_expr_test": [case]}]}  # fmt: skip
        file = folder / "recorded.test.yml"
        file.write_text(json.dumps(test))  # which is YAML, too
        said = subprocess.run(("promtool", "test", "rules", str(file)), capture_output=True, text=True)
        if said.returncode == 0:
            return bool(expected)
    raise AssertionError(said.stdout + said.stderr)
