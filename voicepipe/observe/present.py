"""What Prometheus reads of a PoP that does not grow: it is true at the moment."""

from collections.abc import Iterator, Mapping
from typing import get_args

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from voicepipe import __version__
from voicepipe.config import PopConfig
from voicepipe.health import Health, Status

HERE = ("pop", "region")
"""Labels of every figure, so that one look says which region is late."""


def present(here: tuple[str, str], pop: PopConfig, health: Health) -> Iterator[Metric]:
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
    yield gauge("voicepipe_decoders_lent", "Decoders of recognisers, lent to utterances.", health.decoders)
    yield gauge(
        "process_resident_memory_bytes",
        "Memory of this process, without its children's.",
        health.rss_kb * 1024,
    )
    yield gauge("process_open_fds", "File descriptors.", health.fds)
    cpu = CounterMetricFamily("process_cpu_seconds", "Processor time.", labels=HERE)
    cpu.add_metric(here, health.cpu_s)
    yield cpu
