"""The metrics of one PoP for Prometheus, by its conventions for names and units. The call path knows nothing of them:
they follow from the record of each turn and the end of each call.

Counters and histograms grow as turns (`turn_metrics.py`) and calls end. What is true at the moment (`present`,
`of_queues`, `external_metrics.py`) is read when somebody asks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import get_args

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from voicepipe import __version__
from voicepipe.base import queues
from voicepipe.base.errors import Reason
from voicepipe.base.queues import QueueFigures
from voicepipe.call_api import DoorKind, Refusal
from voicepipe.config import PopConfig
from voicepipe.health import Health, Status
from voicepipe.line import NetworkQuality
from voicepipe.observe.call_followers import UNTRACED, CallEnd, CallFacts, CallTracer
from voicepipe.observe.external_metrics import GpuMetrics, VllmMetrics
from voicepipe.observe.metric_families import HERE, F, Families, ReadNow, at_present, written
from voicepipe.observe.turn_metrics import TurnMetrics

LOSS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
MOS = (1.5, 2.0, 2.5, 3.0, 3.5, 3.8, 4.0, 4.2, 4.3, 4.4, 4.5)
JITTER_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
ENDS = (
    "caller", "agent", "no_input", "transferred", "max_length", "idle", "shutdown", "error", "closed", "not_begun",
)  # fmt: skip
"""The reasons for which calls end: `CallEnded.reason`, and those of their ingress."""
PREDICTION_RATIOS = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)


ExtraMetrics = Callable[[tuple[str, str]], Iterable[Metric]]
"""Makes the metrics of one moment, with these labels, as in HERE."""
RATING = 93.2
"""Rating of a call without any loss or delay (G.107, default values)."""
ROBUST = 25.1
"""Robustness against random loss: G.711 with concealment (G.113, appendix I). Opus bears more; so this errs on the low
side."""
TIRING_MS = 177.3
"""One-way delay from which people notice that they speak over one another (Cole and Rosenbluth's form of G.107)."""


class Metrics(TurnMetrics):
    """The metrics of a PoP for Prometheus. Implements `operator_views.MetricsApi`.
    `health` is `Pop.health`; `traces` have the number of spans that were dropped."""

    def __init__(self, pop: PopConfig, health: Callable[[], Health], traces: CallTracer = UNTRACED) -> None:
        self._here = (pop.id, pop.region)
        self._pop = pop
        self._health = health
        self.others: list[ExtraMetrics] = []
        """Further metrics that hold at the moment."""
        self._traces = traces
        self._registry = registry = CollectorRegistry()
        self._now = ReadNow()
        for read_at_once in (self._now, VllmMetrics(self._here), GpuMetrics(self._here)):
            registry.register(read_at_once)
        families = Families(registry, dict(zip(HERE, self._here, strict=True)))
        super().__init__(families)
        self._calls = families.counter(
            "voicepipe_calls", "Calls that have ended, by what ended them.", "ingress", "reason"
        )
        self._refusals = families.counter(
            "voicepipe_refusals", "Calls that were not taken, also before admission.", "ingress", "reason"
        )
        self._loss = families.histogram(
            "voicepipe_call_loss_ratio", "Of a call's packets from its caller, the missing ones.", LOSS, "ingress"
        )
        self._jitter = families.histogram(
            "voicepipe_call_jitter_seconds", "Jitter of a call's packets.", JITTER_S, "ingress"
        )
        self._mos = families.histogram(
            "voicepipe_call_mos", "How callers sound by their network (ITU-T G.107), 1 to 4.4.", MOS, "ingress"
        )
        self._hand_overs = families.counter(
            "voicepipe_hand_overs", "Calls that an agent has handed over to another one.", "ingress"
        )
        self._in_progress = families.gauge("voicepipe_calls_in_progress", "Calls that are answered now.", "ingress")
        self._prediction_check = families.histogram(
            "voicepipe_prediction_ratio",
            "The latency of a turn in a call's first minute, as far as the engines made it, to what was predicted when "
            "the call was let in; one turn in twenty may be over 1.", PREDICTION_RATIOS,
        )  # fmt: skip
        self._prediction_check()
        for kind in get_args(DoorKind):  # At 0, as `TurnMetrics`.
            for of_kind in (self._hand_overs, self._in_progress, self._loss, self._jitter, self._mos):
                of_kind(kind)
            for reason in ENDS:
                self._calls(kind, reason)
            for reason in get_args(Reason):
                self._refusals(kind, reason)

    # Told as it happens.

    def began(self, call: CallFacts) -> None:
        self._in_progress(call.line).inc()

    def left(self, call: CallFacts) -> None:
        self._in_progress(call.line).dec()

    def handed_over(self, call: CallFacts, to: str) -> None:
        self._hand_overs(call.line).inc()

    def ended(self, call: CallFacts, end: CallEnd) -> None:
        kind, network = call.line, end.network
        self._calls(kind, end.reason).inc()
        if network.loss_percent is not None:
            self._loss(kind).observe(network.loss_percent / 100)
        if network.jitter_ms is not None:
            self._jitter(kind).observe(network.jitter_ms / 1000)
        if (grade := mos(network)) is not None:
            self._mos(kind).observe(grade)

    def prediction_check(self, ratio: float) -> None:
        self._prediction_check().observe(ratio)

    def refused(self, refusal: Refusal) -> None:
        self._refusals(refusal.door, refusal.reason).inc()

    # Asked.

    def read(self, accept: str) -> Callable[[], tuple[bytes, str]]:
        """As `operator_views.MetricsApi.read`."""
        here = self._here
        now = present(here, self._pop, self._health(), self._traces.dropped)
        others = (metric for other in self.others for metric in other(here))
        self._now.metrics = [*now, *of_queues(here, queues.shown()), *others]
        return written(self._registry, accept)


def present(here: tuple[str, str], pop: PopConfig, health: Health, spans_dropped: int) -> Iterator[Metric]:
    """The gauges of the PoP as a whole. `here`: its labels, as in HERE."""

    def gauge(name: str, help_text: str, number: float) -> Metric:
        return at_present(GaugeMetricFamily, name, help_text, HERE, [(here, number)])

    def by(label: str, name: str, help_text: str, values: Mapping[str, float]) -> Metric:
        samples = [((*here, value), number) for value, number in values.items()]
        return at_present(GaugeMetricFamily, name, help_text, (*HERE, label), samples)

    yield by("version", "voicepipe_build_info", "Always 1.", {__version__: 1})
    status = {each: float(each == health.status) for each in get_args(Status)}
    yield by("status", "voicepipe_status", "1 for what /readyz says, 0 for the others.", status)
    none = dict.fromkeys(("vad", "asr", "llm", "tts"), 0.0)
    yield by("engine", "voicepipe_engine_down_seconds", "For how long an engine has not worked.", none | health.down)
    yield at_present(
        CounterMetricFamily, "voicepipe_engine_restarts", "How often an engine was started again after it broke.",
        (*HERE, "engine"), [((*here, engine), number) for engine, number in (none | health.restarts).items()],
    )  # fmt: skip
    yield gauge("voicepipe_slots", "Calls that the PoP may have at a time (pop.slots).", pop.slots)
    yield gauge("voicepipe_slots_used", "Calls that hold one.", health.calls)
    yield gauge("voicepipe_budget_seconds", "The promised turn latency (pop.budget_ms).", pop.budget_ms / 1000)
    yield gauge(
        "voicepipe_predicted_latency_seconds", "95th percentile that one more call would bring.",
        health.predicted_ms / 1000,
    )  # fmt: skip
    yield gauge(
        "voicepipe_event_loop_lag_seconds", "99th percentile of the last half minute.", health.loop_lag_p99_ms / 1000
    )
    yield gauge(
        "process_resident_memory_bytes",
        "Memory of this process, without its children's.",
        health.rss_kb * 1024,
    )
    yield gauge("process_open_fds", "File descriptors.", health.fds)
    for name, help_text, total in (
        ("process_cpu_seconds", "Processor time.", health.cpu_s),
        ("voicepipe_trace_spans_dropped", "Spans of traces that never reached their collector.", spans_dropped),
    ):
        yield at_present(CounterMetricFamily, name, help_text, HERE, [(here, total)])


def of_queues(here: tuple[str, str], queues: Sequence[QueueFigures]) -> Iterator[Metric]:
    """The gauges of the process's queues. `here`: as in `present`."""
    labels = (*HERE, "queue")

    def figure(kind: type[F], name: str, help_text: str, of: Callable[[QueueFigures], float | None]) -> F:
        known = [((*here, queue.name), number) for queue in queues if (number := of(queue)) is not None]
        return at_present(kind, f"voicepipe_queue_{name}", help_text, labels, known)

    yield figure(GaugeMetricFamily, "waiting", "Jobs that wait now.", lambda queue: queue.waiting)
    yield figure(GaugeMetricFamily, "running", "Jobs that have begun and are not done.", lambda queue: queue.running)
    yield figure(GaugeMetricFamily, "limit", "Jobs, in all, with which it is full.", lambda queue: queue.limit)
    waits = SummaryMetricFamily("voicepipe_queue_wait_seconds", "How long jobs waited until they began.", labels=labels)
    for queue in queues:
        waits.add_metric((*here, queue.name), queue.begun, queue.waited_s)
    yield waits
    yield figure(CounterMetricFamily, "refused", "Jobs for which there was no room.", lambda queue: queue.refused)
    yield figure(CounterMetricFamily, "wasted", "Jobs whose outcome was not needed.", lambda queue: queue.wasted)


def mos(network: NetworkQuality) -> float | None:
    """Estimated call quality (MOS), from 1 (bad) to 4.4 (as good as a phone call gets); None: nothing is known of the
    network. An unknown round trip counts as none: the estimate is too good then."""
    if network.loss_percent is None:
        return None
    one_way_ms = (network.rtt_ms or 0.0) / 2 + (network.jitter_ms or 0.0)  # a jitter buffer waits for about as long
    delayed = 0.024 * one_way_ms + 0.11 * max(0.0, one_way_ms - TIRING_MS)
    lost = 95.0 * network.loss_percent / (network.loss_percent + ROBUST)
    rating = max(0.0, RATING - delayed - lost)
    return max(1.0, 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6)
