"""Metrics that grow, as their owner sees them: by the labels in which its own series differ, the same ones before."""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

M = TypeVar("M", Counter, Gauge, Histogram)


class Family(Generic[M]):
    """The series of one metric, which begin when they are asked for the first time."""

    def __init__(self, metric: M, before: tuple[str, ...]) -> None:
        self._metric: M = metric
        self._before = before
        self._series: dict[tuple[str, ...], M] = {}

    def __call__(self, *labels: str) -> M:
        """The one that has these."""
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = self._metric.labels(*self._before, *labels)
        return series


class Families:
    """Of one registry. `before`: the labels that all series have, and their values."""

    def __init__(self, registry: CollectorRegistry, before: Mapping[str, str]) -> None:
        self._registry = registry
        self._names, self._before = tuple(before), tuple(before.values())

    def counter(self, name: str, told: str, *labels: str) -> Family[Counter]:
        return Family(Counter(name, told, (*self._names, *labels), registry=self._registry), self._before)

    def gauge(self, name: str, told: str, *labels: str) -> Family[Gauge]:
        return Family(Gauge(name, told, (*self._names, *labels), registry=self._registry), self._before)

    def histogram(self, name: str, told: str, bounds: Iterable[float], *labels: str) -> Family[Histogram]:
        names, buckets = (*self._names, *labels), tuple(bounds)
        return Family(Histogram(name, told, names, registry=self._registry, buckets=buckets), self._before)
