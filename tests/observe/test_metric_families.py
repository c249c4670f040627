"""What one scrape gets, in which format."""

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from tests.observe.test_metrics import HEALTH
from voicepipe.config import PopConfig
from voicepipe.observe.metric_families import Families, ReadNow, at_present, written
from voicepipe.observe.metrics import Metrics

POP = PopConfig(id="fra1", region="eu-central", slots=4, budget_ms=300)


def test_who_asks_for_openmetrics_gets_it() -> None:
    text, content_type = Metrics(POP, lambda: HEALTH).read("application/openmetrics-text; version=1.0.0")()
    assert content_type.startswith("application/openmetrics-text") and text.endswith(b"# EOF\n")
    assert len(list(openmetrics(text.decode()))) > 30  # type: ignore[no-untyped-call]


def test_a_format_that_nobody_knows_is_answered_with_the_usual_one() -> None:
    _, content_type = Metrics(POP, lambda: HEALTH).read("application/openmetrics-text; version=x")()
    assert content_type.startswith("text/plain")


def lines(registry: CollectorRegistry, accept: str = "") -> list[str]:
    """Without comments."""
    text, _ = written(registry, accept)()
    return [line for line in text.decode().splitlines() if not line.startswith("#")]


def test_a_series_begins_when_it_is_asked_for_and_has_its_owners_labels() -> None:
    families = Families(registry := CollectorRegistry(), {"pop": "fra1", "region": "eu"})
    calls = families.counter("calls", "Calls.", "ingress")
    assert lines(registry) == []
    calls("sip")
    assert lines(registry) == ['calls_total{ingress="sip",pop="fra1",region="eu"} 0.0']
    for _ in range(3):
        calls("sip").inc()
    calls("webrtc").inc()
    assert lines(registry) == [
        'calls_total{ingress="sip",pop="fra1",region="eu"} 3.0',
        'calls_total{ingress="webrtc",pop="fra1",region="eu"} 1.0',
    ]


def test_gauges_and_histograms_alike() -> None:
    families = Families(registry := CollectorRegistry(), {"pop": "fra1"})
    families.gauge("slots", "Slots.")().set(4)
    families.histogram("latency", "Latency.", (0.1, 0.2), "ingress")("sip").observe(0.15)
    assert lines(registry) == [
        'slots{pop="fra1"} 4.0',
        'latency_bucket{ingress="sip",le="0.1",pop="fra1"} 0.0',
        'latency_bucket{ingress="sip",le="0.2",pop="fra1"} 1.0',
        'latency_bucket{ingress="sip",le="+Inf",pop="fra1"} 1.0',
        'latency_count{ingress="sip",pop="fra1"} 1.0',
        'latency_sum{ingress="sip",pop="fra1"} 0.15',
    ], "and no series of when each of them began"


def test_what_is_true_now_takes_the_place_of_what_was() -> None:
    registry, now = CollectorRegistry(), ReadNow()
    registry.register(now)
    for value in (1.0, 2.0):
        now.metrics = [at_present(GaugeMetricFamily, "age", "Age.", ("pop",), [(("a",), value), (("b",), 0.5)])]
        assert lines(registry) == [f'age{{pop="a"}} {value}', 'age{pop="b"} 0.5']


def test_a_name_with_a_colon_stays_as_it_is_in_either_format() -> None:
    registry = CollectorRegistry()
    Families(registry, {"pop": "fra1"}).gauge("vllm:running", "Running.")().set(1)
    for accept in ("", "application/openmetrics-text; version=1.0.0"):
        assert lines(registry, accept) == ['vllm:running{pop="fra1"} 1.0']
