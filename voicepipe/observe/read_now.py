"""Figures that are true at the moment of a scrape, beside those that grow."""

from collections.abc import Iterable

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


class ReadNow(Collector):
    """A part of a registry: `metrics` are read on the event loop, and written by a thread."""

    def __init__(self) -> None:
        self.metrics: list[Metric] = []

    def collect(self) -> Iterable[Metric]:
        return self.metrics
