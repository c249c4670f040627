"""What Prometheus is told, read back by the parser of its own client."""

from dataclasses import dataclass, replace
from typing import get_args

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from voicepipe.base import queues
from voicepipe.base.queues import QueueFigures
from voicepipe.call_api import Refusal
from voicepipe.config import PopConfig
from voicepipe.conversation.events import ReplyDone, ToolUse
from voicepipe.conversation.timing import TurnSummary
from voicepipe.health import Health, Status
from voicepipe.line import NetworkQuality
from voicepipe.observe.call_followers import CallEnd, CallFacts
from voicepipe.observe.last_turns import AskedTurn, full_turn
from voicepipe.observe.metrics import Metrics, present

POP = PopConfig(id="fra1", region="eu-central", slots=4, budget_ms=300)
HEALTH = Health(
    tasks=3, threads=2, codecs=0, fds=20, rss_kb=2048, heap_kb=1, blocks=1, cpu_s=7.5, loop_lag_p99_ms=2.5,
    status="ok", calls=1, predicted_ms=180, decoders=1, down={"llm": 12},
    restarts={"llm": 2},
)  # fmt: skip
ASKED = AskedTurn(1.0, "turn_1", "when are you open", "rtc_1", "acme", "front-desk")


def read(metrics: Metrics) -> dict[str, float]:
    """Each sample, by its name and labels but for `pop` and `region`, which all have."""
    text, content_type = metrics.read("text/plain")()
    assert content_type.startswith("text/plain; version=")
    found = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert (labels.pop("pop"), labels.pop("region")) == ("fra1", "eu-central"), sample.name
            shown = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
            found[f"{sample.name}{{{shown}}}"] = sample.value
    return found


def of(line: str) -> CallFacts:
    return CallFacts(id="rtc_1", tenant="acme", agent="front-desk", line=line, since=1.0)


def turn(**record: object) -> ReplyDone:
    return ReplyDone("resp_1", "completed", record=TurnSummary(**record))  # type: ignore[arg-type]


def test_a_turn_is_in_its_bucket_and_told_apart_by_stage() -> None:
    metrics = Metrics(POP, lambda: HEALTH)
    done = turn(turn_latency=341.0, at_settle=60.0, at_words=70.0, asr=10.0, at_prepare=70.0,
                at_token=90.0, at_commit=140.0, at_phrase=320.0,
                at_speech=340.0, speculation="hit", discarded=2, discarded_ms=30.0)  # fmt: skip
    metrics.turn(of("sip"), full_turn(ASKED, done, POP.budget_ms))
    seen = read(metrics)
    assert seen["voicepipe_turn_latency_seconds_bucket{ingress=sip,le=0.34}"] == 0
    assert seen["voicepipe_turn_latency_seconds_bucket{ingress=sip,le=0.36}"] == 1
    assert seen["voicepipe_turn_wait_seconds_sum{ingress=sip,stage=endpointing}"] == 0.14
    assert abs(seen["voicepipe_turn_wait_seconds_sum{ingress=sip,stage=llm}"] - 0.18) < 1e-9
    assert seen["voicepipe_turns_total{ingress=sip}"] == seen["voicepipe_turns_late_total{ingress=sip}"] == 1
    assert seen["voicepipe_turns_missed_total{ingress=sip}"] == 0
    assert seen["voicepipe_stage_seconds_sum{ingress=sip,stage=asr}"] == 0.01
    assert seen["voicepipe_stage_seconds_count{ingress=sip,stage=first_token}"] == 1
    assert seen["voicepipe_speculations_total{result=hit}"] == 1
    assert seen["voicepipe_speculations_discarded_total{}"] == 2
    assert seen["voicepipe_speculation_discarded_seconds_total{}"] == 0.03


def test_tools_that_were_begun_early_are_counted_as_used_or_dropped() -> None:
    metrics = Metrics(POP, lambda: HEALTH)
    tools = ToolUse("look", early=True), ToolUse("book")
    done = replace(turn(at_commit=140.0, tools_dropped=2), tools=tools)
    metrics.turn(of("sip"), full_turn(ASKED, done, POP.budget_ms))
    seen = read(metrics)
    assert seen["voicepipe_early_tools_total{result=used}"] == 1
    assert seen["voicepipe_early_tools_total{result=dropped}"] == 2


def test_a_turn_that_the_client_asked_for_is_not_timed() -> None:
    metrics = Metrics(POP, lambda: HEALTH)
    metrics.turn(
        of("websocket"), full_turn(ASKED, turn(turn_latency=900.0, at_commit=1.0, by_request=True), POP.budget_ms)
    )
    seen = read(metrics)
    assert seen["voicepipe_turns_total{ingress=websocket}"] == 1
    assert seen["voicepipe_turn_latency_seconds_count{ingress=websocket}"] == 0


def test_calls_refusals_and_what_is_true_now() -> None:
    metrics = Metrics(POP, lambda: HEALTH)
    for _ in range(2):
        metrics.began(of("webrtc"))
    metrics.ended(
        of("webrtc"), CallEnd(reason="caller", at=61.0, network=NetworkQuality(loss_percent=1.5, jitter_ms=3.0))
    )
    metrics.left(of("webrtc"))
    metrics.barged_in(of("webrtc"))
    metrics.refused(Refusal("full", "sip", "acme", "front-desk", 486))
    seen = read(metrics)
    assert seen["voicepipe_calls_in_progress{ingress=webrtc}"] == 1
    assert seen["voicepipe_calls_total{ingress=webrtc,reason=caller}"] == 1
    assert seen["voicepipe_call_loss_ratio_bucket{ingress=webrtc,le=0.02}"] == 1
    assert seen["voicepipe_call_jitter_seconds_sum{ingress=webrtc}"] == 0.003
    assert seen["voicepipe_barge_ins_total{ingress=webrtc}"] == 1
    assert 4 < seen["voicepipe_call_mos_sum{ingress=webrtc}"] < 4.4
    assert seen["voicepipe_refusals_total{ingress=sip,reason=full}"] == 1
    assert seen["voicepipe_status{status=ok}"] == 1 and seen["voicepipe_status{status=late}"] == 0
    assert (
        seen["voicepipe_engine_down_seconds{engine=llm}"] == 12
        and seen["voicepipe_engine_down_seconds{engine=asr}"] == 0
    )
    assert (
        seen["voicepipe_engine_restarts_total{engine=llm}"] == 2
        and seen["voicepipe_engine_restarts_total{engine=tts}"] == 0
    )
    assert seen["voicepipe_slots{}"] == 4 and seen["voicepipe_slots_used{}"] == 1
    assert seen["voicepipe_event_loop_lag_seconds{}"] == 0.0025
    assert seen["process_resident_memory_bytes{}"] == 2 << 20 and seen["process_cpu_seconds_total{}"] == 7.5


def test_how_good_predictions_were() -> None:
    metrics = Metrics(POP, lambda: HEALTH)
    for ratio in (0.8, 1.0, 2.4):
        metrics.prediction_check(ratio)
    seen = read(metrics)
    assert seen["voicepipe_prediction_ratio_bucket{le=1.0}"] == 2
    assert seen["voicepipe_prediction_ratio_count{}"] == 3


def test_every_series_of_every_door_is_there_before_its_first_event() -> None:
    seen = read(Metrics(POP, lambda: HEALTH))
    for kind in ("websocket", "webrtc", "sip", "twilio", "telnyx"):
        for name in ("turns_late_total", "turns_missed_total", "cut_ins_total", "calls_in_progress"):
            assert seen[f"voicepipe_{name}{{ingress={kind}}}"] == 0
        assert seen[f"voicepipe_refusals_total{{ingress={kind},reason=full}}"] == 0
        for name in ("loss_ratio", "jitter_seconds", "mos"):
            assert seen[f"voicepipe_call_{name}_count{{ingress={kind}}}"] == 0
    assert not any("_created" in name for name in seen)


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
