"""Metrics of others that we export with our labels: vLLM's own, and the GPUs' by NVIDIA's driver.

It is read in the thread that writes a scrape: the driver may take its time, and vLLM has hundreds of series.
"""

import threading
from collections.abc import Callable, Iterator, Sequence

import msgspec
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from voicepipe.engines.hosting.gpus import SLOWED, GpuLoad, loads
from voicepipe.observe.metric_families import HERE, at_present

VLLM = "vllm:"
"""The prefix of vLLM's metrics."""
LOAD = {
    "vllm:kv_cache_usage_perc": "kv_cache",
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
}


class VllmLoad(msgspec.Struct, frozen=True):
    """The load of one of vLLM's engines at present."""

    kv_cache: float = 0.0
    """Part of its KV cache in use, from 0 to 1."""
    running: float = 0.0
    """Replies that it generates."""
    waiting: float = 0.0
    """Replies that it has not begun, or has taken out of its cache."""


class VllmMetrics(Collector):
    """The metrics of the vLLM in this process, under its names; none without one. It counts anew when it was
    restarted."""

    def __init__(self, here: tuple[str, str], theirs: CollectorRegistry = REGISTRY) -> None:
        """`theirs`: the registry that vLLM uses."""
        self._here = dict(zip(HERE, here, strict=True))
        self._theirs = theirs

    def collect(self) -> Iterator[Metric]:
        for family in self._theirs.collect():
            if family.name.startswith(VLLM):
                copy = Metric(family.name, family.documentation, family.type, family.unit)
                for sample in family.samples:
                    copy.samples.append(sample._replace(labels=self._here | sample.labels))
                yield copy


def vllm_loads(theirs: CollectorRegistry = REGISTRY) -> list[VllmLoad]:
    """The load of each engine of the vLLM in this process; empty: there is none."""
    found: dict[frozenset[tuple[str, str]], dict[str, float]] = {}
    for family in theirs.restricted_registry(LOAD).collect():
        for sample in family.samples:
            found.setdefault(frozenset(sample.labels.items()), {})[LOAD[sample.name]] = sample.value
    return [VllmLoad(**figures) for figures in found.values()]


class GpuMetrics(Collector):
    """Metrics of the GPUs that this process sees, by NVIDIA's driver; none without one. While the driver does not
    return from one scrape, the next ones go without these metrics: only one thread is blocked."""

    def __init__(self, here: tuple[str, str], read: Callable[[], Sequence[GpuLoad]] = loads) -> None:
        self._here = here
        self._read = read
        self._asking = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        if not self._asking.acquire(blocking=False):
            return
        try:
            gpus = self._read()
        finally:
            self._asking.release()
        if gpus:
            yield from self._metrics(gpus)

    def _metrics(self, gpus: Sequence[GpuLoad]) -> Iterator[Metric]:
        figures: tuple[tuple[str, str, Callable[[GpuLoad], float | None]], ...] = (
            ("utilization_ratio", "Share of the last moments in which something ran on it.", lambda gpu: gpu.busy),
            ("memory_used_bytes", "Memory in use, by all processes.", lambda gpu: gpu.memory_used),
            ("memory_size_bytes", "Memory that it has.", lambda gpu: gpu.memory_size),
            ("temperature_celsius", "Of the chip.", lambda gpu: gpu.celsius),
            ("power_watts", "What it draws.", lambda gpu: gpu.watts),
            ("power_limit_watts", "What it may draw.", lambda gpu: gpu.limit_watts),
        )
        where = [((*self._here, str(gpu.index)), gpu) for gpu in gpus]
        infos = [((*here, gpu.name, gpu.uuid), 1.0) for here, gpu in where]
        yield at_present(GaugeMetricFamily, "voicepipe_gpu_info", "Always 1.", (*HERE, "gpu", "name", "uuid"), infos)
        for name, help_text, value in figures:
            known = [(here, number) for here, gpu in where if (number := value(gpu)) is not None]
            yield at_present(GaugeMetricFamily, f"voicepipe_gpu_{name}", help_text, (*HERE, "gpu"), known)
        yield at_present(
            GaugeMetricFamily, "voicepipe_gpu_throttled", "1: for this reason its clock is lower than it could be.",
            (*HERE, "gpu", "reason"),
            [((*here, reason), float(reason in gpu.slowed)) for here, gpu in where if gpu.slowed is not None
             for reason in SLOWED],
        )  # fmt: skip
        yield at_present(
            CounterMetricFamily, "voicepipe_gpu_ecc_errors", "Errors of its memory since its driver was loaded.",
            (*HERE, "gpu", "kind"),
            [((*here, kind), count) for here, gpu in where
             for kind, count in (("corrected", gpu.ecc_corrected), ("uncorrected", gpu.ecc_uncorrected))
             if count is not None],
        )  # fmt: skip
