"""The metrics of a probe for Prometheus."""

import time
from collections.abc import Callable, Hashable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from voicepipe.config.probe_config import ProbeConfig
from voicepipe.observe.metric_families import written
from voicepipe.probe.probe_targets import ProbeSeries
from voicepipe.probe.verdict import ProbeVerdict

LABELS = ("target", "way", "pop", "by")
GAPS_S = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 4.0)
MOST_WORDS, MOST_POPS = 64, 1000
"""Stages and codes, and PoPs, that have series of their own; what servers make up beyond them is OTHER."""
OTHER = "other"


class ProbeMetrics:
    """What calls were like, by target, way, PoP and door. Gauges are of a series' last call that was sure."""

    def __init__(self, config: ProbeConfig, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._registry = registry = CollectorRegistry()
        self._words: set[str] = set()
        self._pops: set[str] = set()
        self._shown: dict[Hashable, list[tuple[Gauge, tuple[str, ...]]]] = {}
        """Gauges that each series has, which go when its next call says otherwise."""

        def gauge(name: str, about: str, *labels: str) -> Gauge:
            return Gauge(f"voicepipe_probe_{name}", about, labels, registry=registry)

        self._up = gauge("up", "1: the last call was answered, and rightly; late or not.", *LABELS)
        self._right = gauge("answer_right", "1: the last answer was the right one; 0: a wrong one.", *LABELS)
        self._gap = gauge("last_heard_gap_seconds", "From the last word to the answer's first sound.", *LABELS)
        self._wrong = gauge("words_wrong_ratio", "Share of the question's words that were misheard.", *LABELS)
        self._setup = gauge("setup_seconds", "From asking for the last call until it was up.", *LABELS)
        self._fault = gauge(
            "fault", "Calls in a row that had a fault, with what the last of them had.", *LABELS, "fault", "stage"
        )
        self._last = gauge("last_call_timestamp_seconds", "When the last call ended that was sure.", *LABELS)
        budget = gauge("budget_seconds", "A longer heard gap is late.", "target")
        for target in config.targets:
            budget.labels(target.name).set(target.budget_ms / 1000)
        gauge("every_seconds", "Between two calls to the same target by the same door.").set(config.probe.every_s)
        self._lag = gauge("event_loop_lag_seconds", "The most that this process was late during the last call.")
        self._gaps = Histogram(
            "voicepipe_probe_heard_gap_seconds", "From the last word to the answer's first sound, of calls that were "
            "sure.", LABELS, buckets=GAPS_S, registry=registry,
        )  # fmt: skip
        self._calls = Counter("voicepipe_probe_calls", "Calls that were placed.", LABELS, registry=registry)
        self._failures = Counter(
            "voicepipe_probe_failures", "Calls that had a fault.", (*LABELS, "fault", "stage"), registry=registry
        )
        self._unsure = Counter(
            "voicepipe_probe_unsure", "Calls whose fault may be this process's own, which was late.",
            ("target", "by"), registry=registry,
        )  # fmt: skip
        ProcessCollector(registry=registry)

    def called(self, series: ProbeSeries, verdict: ProbeVerdict, in_a_row: int) -> None:
        """A call has ended. `in_a_row`: calls of the series with a fault, this one included."""
        labels = (series.target, series.way, _known(verdict.pop, self._pops, MOST_POPS), series.by)
        self._calls.labels(*labels).inc()
        if not verdict.sure:
            self._unsure.labels(series.target, series.by).inc()
            return
        self.forget(series)
        up = verdict.fault in (None, "late", "greeting")
        self._show(series, self._up, labels, float(up))
        self._show(series, self._last, labels, self._now())
        for gauge, value in (
            (self._right, verdict.right),
            (self._gap, verdict.heard_gap_s),
            (self._wrong, verdict.words_wrong),
            (self._setup, verdict.setup_s),
        ):
            if value is not None:
                self._show(series, gauge, labels, float(value))
        if verdict.heard_gap_s is not None:
            self._gaps.labels(*labels).observe(verdict.heard_gap_s)
        if verdict.fault:
            of_fault = (*labels, verdict.fault, _known(verdict.stage, self._words, MOST_WORDS))
            self._failures.labels(*of_fault).inc()
            self._show(series, self._fault, of_fault, float(in_a_row))

    def forget(self, series: ProbeSeries) -> None:
        """Its last call says nothing any more."""
        for gauge, labels in self._shown.pop(series, ()):
            gauge.remove(*labels)

    def late(self, lag_s: float) -> None:
        """This process was late by so much during a call."""
        self._lag.set(lag_s)

    def read(self, accept: str) -> Callable[[], tuple[bytes, str]]:
        """As `operator_views.MetricsApi.read`."""
        return written(self._registry, accept)

    def _show(self, series: ProbeSeries, gauge: Gauge, labels: tuple[str, ...], value: float) -> None:
        gauge.labels(*labels).set(value)
        self._shown.setdefault(series, []).append((gauge, labels))


def _known(word: str, known: set[str], most: int) -> str:
    if len(known) < most:
        known.add(word)
    return word if word in known else OTHER
