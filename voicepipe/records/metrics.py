"""Metrics of a PoP's records, and of its webhooks about calls."""

import time
from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from voicepipe.observe.metric_families import HERE, at_present
from voicepipe.records.records import Records


def of_records(records: Records, here: tuple[str, str]) -> Iterator[Metric]:
    """The metrics of records and deliveries. `here`: the PoP's labels, as in HERE. The number of records that wait to
    be written is among the queues."""
    spool = records.deliveries.spool
    age_s = 0.0 if spool.since is None else max(0.0, time.time() - spool.since)
    for name, help_text, value in (
        ("voicepipe_records_failing", "1: the file of records cannot be written; they wait.",
         float(bool(records.writer.failing))),
        ("voicepipe_deliveries_waiting", "Records that receivers are still to be sent (hooks.after_call).",
         spool.waiting),
        ("voicepipe_deliveries_oldest_seconds", "For how long the oldest of them has waited.", age_s),
    ):  # fmt: skip
        yield at_present(GaugeMetricFamily, name, help_text, HERE, [(here, value)])
    failed, help_text = records.deliveries.failed, "Tries that no receiver took."
    yield at_present(CounterMetricFamily, "voicepipe_deliveries_failed", help_text, HERE, [(here, failed)])
