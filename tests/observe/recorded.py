"""Which alerts fire where a fault goes on as it was recorded: scrapes of a PoP, before and meanwhile, become series for
promtool. What counts grows on and on by as much; what goes up and down does so again and again."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
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
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = (float(sample.value), family.type in GROW)
    return found


def value(scraped: Scrape, name: str) -> float:
    """The sum of the series of this name; 0: there are none."""
    return sum(number for series, (number, _) in scraped.items() if series.startswith(f"{name}{{"))


def series(before: Scrape, meanwhile: Sequence[Scrape]) -> list[dict[str, str]]:
    """As promtool takes them."""
    return [
        {"series": name, "values": _grown(before.get(name, (0.0, True))[0], now) if grows else _again(name, meanwhile)}
        for name, (now, grows) in meanwhile[-1].items()
    ]


def _grown(start: float, now: float) -> str:
    return f"{start}+{(now - start) / A_MINUTE}x{STEPS}"


def _again(name: str, meanwhile: Sequence[Scrape]) -> str:
    seen = [scraped[name][0] for scraped in meanwhile if name in scraped]
    return " ".join(map(str, islice(cycle(seen), STEPS)))


def firing(before: Scrape, meanwhile: Sequence[Scrape], folder: Path, *asked: str) -> list[bool]:
    """For each alert, as `TurnsLate{pop="fra1"}`: whether it fires. Raises AssertionError: promtool fails."""
    up = {"series": 'up{job="voicepipe",instance="pop"}', "values": f"1x{STEPS}"}
    inputs = [*series(before, meanwhile), up]
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
