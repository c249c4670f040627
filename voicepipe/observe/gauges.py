"""The gauges of a PoP for Prometheus: figures that hold at the moment and do not only grow."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import get_args

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from voicepipe import __version__
from voicepipe.base.queues import QueueFigures
from voicepipe.config import PopConfig
from voicepipe.health import Health, Status
from voicepipe.observe.metric_families import F, at_present

HERE = ("pop", "region")
"""Labels of every metric, so that one look shows which region is late."""


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
