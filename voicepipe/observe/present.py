"""What Prometheus reads of a PoP that does not grow: it is true at the moment."""

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from voicepipe import __version__
from voicepipe.config import PopConfig
from voicepipe.health import Health, Status
from voicepipe.queues import QueueFigures

HERE = ("pop", "region")
"""Labels of every figure, so that one look says which region is late."""


def present(here: tuple[str, str], pop: PopConfig, health: Health, spans_dropped: int) -> Iterator[Metric]:
    """Of the PoP as a whole. `here`: its labels, as HERE names them."""

    def counter(name: str, told: str, values: Mapping[str, float], label: str) -> Metric:
        family = CounterMetricFamily(name, told, labels=(*HERE, label))
        for value, number in values.items():
            family.add_metric((*here, value), number)
        return family

    def gauge(name: str, told: str, values: Mapping[str, float] | float, label: str = "") -> Metric:
        if not isinstance(values, Mapping):
            family = GaugeMetricFamily(name, told, labels=HERE)
            family.add_metric(here, values)
            return family
        family = GaugeMetricFamily(name, told, labels=(*HERE, label))
        for value, number in values.items():
            family.add_metric((*here, value), number)
        return family

    yield gauge("voicepipe_build_info", "Always 1.", {__version__: 1}, "version")
    status = {each: float(each == health.status) for each in get_args(Status)}
    yield gauge("voicepipe_status", "1 for what /readyz says, 0 for the others.", status, "status")
    none = dict.fromkeys(("vad", "asr", "llm", "tts"), 0.0)
    yield gauge("voicepipe_engine_down_seconds", "For how long an engine has not worked.", none | health.down, "engine")
    yield counter(
        "voicepipe_engine_restarts", "How often an engine was started again after it broke.",
        none | health.restarts, "engine",
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
    for name, told, total in (
        ("process_cpu_seconds", "Processor time.", health.cpu_s),
        ("voicepipe_trace_spans_dropped", "Spans of traces that never reached their collector.", spans_dropped),
    ):
        family = CounterMetricFamily(name, told, labels=HERE)
        family.add_metric(here, total)
        yield family


def of_queues(here: tuple[str, str], queues: Sequence[QueueFigures]) -> Iterator[Metric]:
    """Of those of the process. `here`: as `present`."""
    labels = (*HERE, "queue")
    waiting = GaugeMetricFamily("voicepipe_queue_waiting", "Jobs that wait now.", labels=labels)
    running = GaugeMetricFamily("voicepipe_queue_running", "Jobs that have begun and are not done.", labels=labels)
    limit = GaugeMetricFamily("voicepipe_queue_limit", "Jobs, in all, with which it is full.", labels=labels)
    waits = SummaryMetricFamily("voicepipe_queue_wait_seconds", "How long jobs waited until they began.", labels=labels)
    refused = CounterMetricFamily("voicepipe_queue_refused", "Jobs for which there was no room.", labels=labels)
    wasted = CounterMetricFamily("voicepipe_queue_wasted", "Jobs whose outcome was not needed.", labels=labels)
    for queue in queues:
        which = (*here, queue.name)
        waiting.add_metric(which, queue.waiting)
        running.add_metric(which, queue.running)
        if queue.limit is not None:
            limit.add_metric(which, queue.limit)
        waits.add_metric(which, queue.begun, queue.waited_s)
        refused.add_metric(which, queue.refused)
        wasted.add_metric(which, queue.wasted)
    yield from (waiting, running, limit, waits, refused, wasted)
