"""What one scrape of Prometheus gets, and in which format."""

from collections.abc import Callable, Iterable
from functools import partial

from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, choose_encoder, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import ALLOWUTF8
from prometheus_client.openmetrics.exposition import generate_latest as in_openmetrics
from prometheus_client.registry import Collector

disable_created_metrics()  # type: ignore[no-untyped-call]
"""When each series began is of no use to us, and would be another series."""


class ReadNow(Collector):
    """The part of a registry that does not grow but is true at a moment: set on the event loop."""

    def __init__(self) -> None:
        self.metrics: list[Metric] = []

    def collect(self) -> Iterable[Metric]:
        return self.metrics


def written(registry: CollectorRegistry, accept: str) -> Callable[[], tuple[bytes, str]]:
    """Writes all of it, for a thread: the text, and its content type."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # A version that is no number.
        encode, content_type = generate_latest, CONTENT_TYPE_LATEST
    if content_type.startswith("application/openmetrics-text"):
        # No name needs escaping. By default the library takes the colon out of vLLM's.
        encode = partial(in_openmetrics, escaping=ALLOWUTF8)
    return lambda: (encode(registry), content_type)
