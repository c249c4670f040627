"""What Prometheus reads of a PoP that does not grow: it is true at the moment."""

from collections.abc import Iterator, Mapping
from typing import get_args

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from voicepipe import __version__
from voicepipe.config import PopConfig
from voicepipe.health import Health, Status

HERE = ("pop", "region")
"""Labels of every figure, so that one look says which region is late."""


def present(here: tuple[str, str], pop: PopConfig, health: Health, spans_dropped: int) -> Iterator[Metric]:
    """Of the PoP as a whole. `here`: its labels, as HERE names them."""

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
    down = dict.fromkeys(("vad", "asr", "llm", "tts"), 0.0) | health.down
    yield gauge("voicepipe_engine_down_seconds", "For how long an engine has not worked.", down, "engine")
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
    yield gauge("voicepipe_decoders_lent", "Decoders of recognisers, lent to utterances.", health.decoders)
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
        counter = CounterMetricFamily(name, told, labels=HERE)
        counter.add_metric(here, total)
        yield counter
