"""What Prometheus reads of a probe."""

import re

from tests.probe.series import series
from voicepipe.config.probe_config import ProbeConfig, ProbedConfig
from voicepipe.probe import probe_metrics
from voicepipe.probe.probe_metrics import ProbeMetrics
from voicepipe.probe.verdict import ProbeVerdict

IN_TIME = ProbeVerdict("fra1", None, "", True, "", 0.21, 0.0, True, 0.03)
LATE = ProbeVerdict("fra1", "late", "llm", True, "late", 0.9, 0.0, True, 0.03)
LABEL = re.compile(r'\w+="[^"]*"')
LABELS = 'by="websocket",pop="fra1",target="eu",way="straight"'


def told(metrics: ProbeMetrics) -> dict[str, float]:
    """The values of all series, their labels in alphabetical order."""
    found = {}
    for line in metrics.read("")()[0].decode().splitlines():
        if matched := re.fullmatch(r"voicepipe_probe_(\w+)(?:\{(.*)\})? (\S+)", line):
            name, labels, value = matched.groups()
            ordered = ",".join(sorted(LABEL.findall(labels or "")))
            found[f"{name}{{{ordered}}}"] = float(value)
    return found


def made() -> ProbeMetrics:
    target = ProbedConfig(name="eu", url="http://127.0.0.1:9", budget_ms=350)
    return ProbeMetrics(ProbeConfig(targets=(target,)), now=lambda: 1000.0)


def test_an_answer_in_time() -> None:
    metrics = made()
    metrics.called(series(), IN_TIME, 0)
    found = told(metrics)
    assert {name: found[f"{name}{{{LABELS}}}"] for name in ("up", "answer_right", "last_heard_gap_seconds")} == {
        "up": 1, "answer_right": 1, "last_heard_gap_seconds": 0.21,
    }  # fmt: skip
    assert found[f"words_wrong_ratio{{{LABELS}}}"] == 0 and found[f"setup_seconds{{{LABELS}}}"] == 0.03
    assert found[f"last_call_timestamp_seconds{{{LABELS}}}"] == 1000 and found[f"calls_total{{{LABELS}}}"] == 1
    assert found["every_seconds{}"] == 60 and found['budget_seconds{target="eu"}'] == 0.35
    assert not [name for name in found if name.startswith(("fault", "failures"))]


def test_a_fault_is_there_until_a_call_without_it() -> None:
    metrics = made()
    fault = 'fault{by="websocket",fault="late",pop="fra1",stage="llm",target="eu",way="straight"}'
    for in_a_row in (1, 2):
        metrics.called(series(), LATE, in_a_row)
        assert told(metrics)[fault] == in_a_row
    metrics.called(series(), LATE._replace(stage="tts"), 3)
    assert fault not in told(metrics) and told(metrics)[fault.replace("llm", "tts")] == 3
    metrics.called(series(), IN_TIME, 0)
    found = told(metrics)
    assert not [name for name in found if name.startswith("fault")]
    assert found[fault.replace("fault{", "failures_total{")] == 2


def test_a_pop_that_takes_a_directorys_calls_no_longer_is_shown_no_longer() -> None:
    metrics, its = made(), series(way="directory")
    metrics.called(its, IN_TIME, 0)
    metrics.called(its, IN_TIME._replace(pop="lhr1"), 0)
    assert [name for name in told(metrics) if name.startswith("up")] == [
        'up{by="websocket",pop="lhr1",target="eu",way="directory"}'
    ]
    metrics.forget(its)
    assert not [name for name in told(metrics) if name.startswith("up")]


def test_a_call_that_says_nothing_changes_nothing() -> None:
    metrics = made()
    metrics.called(series(), IN_TIME, 0)
    metrics.called(series(), LATE._replace(sure=False), 0)
    found = told(metrics)
    assert found[f"last_heard_gap_seconds{{{LABELS}}}"] == 0.21
    assert found['unsure_total{by="websocket",target="eu"}'] == 1 and found[f"calls_total{{{LABELS}}}"] == 2


def test_a_server_cannot_make_up_series_without_end() -> None:
    metrics = made()
    for number in range(2 * probe_metrics.MOST_WORDS):
        metrics.called(series(), LATE._replace(fault="refused", stage=f"code_{number}"), 1)
    for number in range(2 * probe_metrics.MOST_POPS):
        metrics.called(series(way="directory"), IN_TIME._replace(pop=f"pop{number}"), 0)
    found = told(metrics)
    assert len([name for name in found if name.startswith("failures")]) == probe_metrics.MOST_WORDS + 1
    assert len([name for name in found if name.startswith("calls")]) == probe_metrics.MOST_POPS + 1
