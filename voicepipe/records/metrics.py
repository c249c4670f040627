"""What Prometheus reads of a PoP's records, and of those who are to be told of calls."""

import time
from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from voicepipe.observe.present import HERE
from voicepipe.records.records import Records


def of_records(records: Records, here: tuple[str, str]) -> Iterator[Metric]:
    """`here`: the PoP's labels, as HERE names them. How many records wait to be written is among the queues."""
    spool = records.deliveries.spool
    age_s = 0.0 if spool.since is None else max(0.0, time.time() - spool.since)
    for name, told, value in (
        ("voicepipe_records_failing", "1: the file of records cannot be written; they wait.",
         float(bool(records.writer.failing))),
        ("voicepipe_deliveries_waiting", "Records that receivers are still to be sent (hooks.after_call).",
         spool.waiting),
        ("voicepipe_deliveries_oldest_seconds", "For how long the oldest of them has waited.", age_s),
    ):  # fmt: skip
        gauge = GaugeMetricFamily(name, told, labels=HERE)
        gauge.add_metric(here, value)
        yield gauge
    failed = CounterMetricFamily("voicepipe_deliveries_failed", "Tries that no receiver took.", labels=HERE)
    failed.add_metric(here, records.deliveries.failed)
    yield failed
