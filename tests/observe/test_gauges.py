"""What is true of a PoP at the moment."""

from dataclasses import dataclass
from typing import get_args

import msgspec

from tests.observe.test_metrics import HEALTH, read
from voicepipe.base import queues
from voicepipe.base.queues import QueueFigures
from voicepipe.config import PopConfig
from voicepipe.health import Status
from voicepipe.observe.gauges import present
from voicepipe.observe.metrics import Metrics

POP = PopConfig(id="fra1", region="eu-central", slots=4, budget_ms=300)


@dataclass(eq=False)
class FakeQueue:
    """One that nobody else has."""

    def __post_init__(self) -> None:
        queues.show(self)

    def figures(self) -> QueueFigures:
        return QueueFigures(name="fake", waiting=3, running=2, limit=8, begun=40, waited_s=1.5, refused=7, wasted=3)


def test_queues_as_they_are_now() -> None:
    queue = FakeQueue()
    seen = read(Metrics(POP, lambda: HEALTH))
    assert seen["voicepipe_queue_waiting{queue=fake}"] == 3
    assert seen["voicepipe_queue_running{queue=fake}"] == 2
    assert seen["voicepipe_queue_limit{queue=fake}"] == 8
    assert seen["voicepipe_queue_wait_seconds_count{queue=fake}"] == 40
    assert seen["voicepipe_queue_wait_seconds_sum{queue=fake}"] == 1.5
    assert seen["voicepipe_queue_refused_total{queue=fake}"] == 7
    assert seen["voicepipe_queue_wasted_total{queue=fake}"] == 3
    del queue
    assert "voicepipe_queue_waiting{queue=fake}" not in read(Metrics(POP, lambda: HEALTH))


def test_of_all_statuses_one_is_true_and_every_engine_is_named() -> None:
    seen = read(Metrics(POP, lambda: msgspec.structs.replace(HEALTH, status="draining", down={}, restarts={})))
    statuses = {name: value for name, value in seen.items() if name.startswith("voicepipe_status{")}
    assert len(statuses) == len(get_args(Status)) and sum(statuses.values()) == 1
    assert statuses["voicepipe_status{status=draining}"] == 1
    for engine in ("vad", "asr", "llm", "tts"):
        assert seen[f"voicepipe_engine_down_seconds{{engine={engine}}}"] == 0
        assert seen[f"voicepipe_engine_restarts_total{{engine={engine}}}"] == 0


def test_milliseconds_and_kilobytes_are_told_in_seconds_and_bytes() -> None:
    health = msgspec.structs.replace(HEALTH, predicted_ms=180.0, loop_lag_p99_ms=2.5, rss_kb=2048)
    told = {metric.name: metric.samples[0] for metric in present(("fra1", "eu"), POP, health, 7)}
    assert told["voicepipe_predicted_latency_seconds"].value == 0.18
    assert told["voicepipe_event_loop_lag_seconds"].value == 0.0025
    assert told["voicepipe_budget_seconds"].value == 0.3
    assert told["process_resident_memory_bytes"].value == 2048 * 1024
    assert told["voicepipe_trace_spans_dropped"].value == 7
    assert all(sample.labels["pop"] == "fra1" and sample.labels["region"] == "eu" for sample in told.values())
