"""Metrics by the labels in which their own series differ, with the same ones before: those that grow, and those that
hold at a moment; and the text of a scrape."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, choose_encoder, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import ALLOWUTF8
from prometheus_client.openmetrics.exposition import generate_latest as in_openmetrics
from prometheus_client.registry import Collector

M = TypeVar("M", Counter, Gauge, Histogram)
F = TypeVar("F", CounterMetricFamily, GaugeMetricFamily)
disable_created_metrics()  # type: ignore[no-untyped-call]
"""When each series began is of no use to us, and would be another series."""
HERE = ("pop", "region")
"""Labels of every metric of a PoP, so that one look shows which region is late."""
Samples = Iterable[tuple[Sequence[str], float]]
"""The values of a metric's labels, and its value with them."""


class Family(Generic[M]):
    """The series of one metric, which begin when they are first used."""

    def __init__(self, metric: M, before: tuple[str, ...]) -> None:
        self._metric: M = metric
        self._before = before
        self._series: dict[tuple[str, ...], M] = {}

    def __call__(self, *labels: str) -> M:
        """The series with these label values."""
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = self._metric.labels(*self._before, *labels)
        return series


class Families:
    """The metrics of one registry. `before`: the labels that all series have, with their values."""

    def __init__(self, registry: CollectorRegistry, before: Mapping[str, str]) -> None:
        self._registry = registry
        self._names, self._before = tuple(before), tuple(before.values())

    def counter(self, name: str, help_text: str, *labels: str) -> Family[Counter]:
        return Family(Counter(name, help_text, (*self._names, *labels), registry=self._registry), self._before)

    def gauge(self, name: str, help_text: str, *labels: str) -> Family[Gauge]:
        return Family(Gauge(name, help_text, (*self._names, *labels), registry=self._registry), self._before)

    def histogram(self, name: str, help_text: str, bounds: Iterable[float], *labels: str) -> Family[Histogram]:
        names, buckets = (*self._names, *labels), tuple(bounds)
        return Family(Histogram(name, help_text, names, registry=self._registry, buckets=buckets), self._before)


def at_present(kind: type[F], name: str, help_text: str, labels: Sequence[str], samples: Samples) -> F:
    """A metric with all of its series, as it is at present."""
    made = kind(name, help_text, labels=labels)
    for values, number in samples:
        made.add_metric(values, number)
    return made


class ReadNow(Collector):
    """The metrics of a registry that do not grow but hold at a moment: set on the event loop."""

    def __init__(self) -> None:
        self.metrics: list[Metric] = []

    def collect(self) -> Iterable[Metric]:
        return self.metrics


def written(registry: CollectorRegistry, accept: str) -> Callable[[], tuple[bytes, str]]:
    """The metrics as text, with its content type; to be called in a thread."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # A version that is no number.
        encode, content_type = generate_latest, CONTENT_TYPE_LATEST
    if content_type.startswith("application/openmetrics-text"):
        # No name needs escaping. By default the library takes the colon out of vLLM's.
        encode = partial(in_openmetrics, escaping=ALLOWUTF8)
    return lambda: (encode(registry), content_type)
