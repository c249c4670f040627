"""What a trace says of a call: whole conversations in virtual time, as spans of OpenTelemetry's SDK."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id

from tests.support import virtual_time
from tests.support.healthy import HEALTHY
from tests.support.scenario import load, play
from voicepipe.call_settings import Origin, TraceContext
from voicepipe.config import Config
from voicepipe.conversation.events import CallEvent
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import PcmFormat
from voicepipe.line import NetworkQuality
from voicepipe.observe import otlp
from voicepipe.observe.call_followers import CallEnd, CallFacts
from voicepipe.observe.calls import LiveCall
from voicepipe.observe.last_turns import LastTurns
from voicepipe.observe.metrics import Metrics
from voicepipe.observe.otel import OtelTracer
from voicepipe.observe.otlp import SpanSender

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
"""Of the example in the convention."""
CALLED = Origin("+4930123456", "+4930999")
FACTS = CallFacts(id="rtc_1", tenant="acme", agent="front-desk", line="webrtc", since=1000.0)
BEGAN = 1_700_000_000.0


class Traced:
    """One call, followed by traces alone."""

    def __init__(self, **tables: Any) -> None:
        self.now = BEGAN
        self.facts: CallFacts | None = None
        """What the last call's followers were told of it."""
        self.exporter = InMemorySpanExporter()
        config = {"traces": {"endpoint": "http://127.0.0.1:4318"}, "pop": {"id": "fra1", "region": "eu"}}
        self.sender = SpanSender(self.exporter)
        self.traces = OtelTracer(msgspec.convert(config | tables, Config), self.sender, lambda: self.now)

    def call(self, events: Sequence[tuple[float, CallEvent]], origin: Origin = CALLED) -> list[ReadableSpan]:
        """What is told of a call with these events, each with its milliseconds; spans in the order of their begin."""
        call = LiveCall(LastTurns(), 300, "acme", "front-desk", traces=self.traces)
        call.answered("rtc_1", WebSocketLine(PcmFormat(), PcmFormat()), BEGAN, origin)
        self.facts = call.facts
        for at_ms, event in events:
            self.now = BEGAN + at_ms / 1000
            call.note(event, self.now)
        call.ended("caller", self.now)
        call.left()
        return self.spans()

    def spans(self) -> list[ReadableSpan]:
        self.sender.force_flush()
        return sorted(self.exporter.get_finished_spans(), key=lambda span: (span.start_time, -(span.end_time or 0)))

    def close(self) -> None:
        self.sender.shutdown()  # type: ignore[no-untyped-call]


@pytest.fixture
def traced() -> Iterator[Traced]:
    made = Traced(engines={"llm": "openai"}, openai={"model": "llama3.2"})
    yield made
    made.close()


async def events_of(scenario: str) -> list[tuple[float, CallEvent]]:
    return (await play(load(scenario))).events


def ms(span: ReadableSpan, since: ReadableSpan) -> tuple[float, float]:
    """Begin and end, after the begin of another one."""
    assert span.start_time and span.end_time and since.start_time
    return round((span.start_time - since.start_time) / 1e6, 1), round((span.end_time - since.start_time) / 1e6, 1)


def below(spans: Sequence[ReadableSpan], parent: ReadableSpan) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans if span.parent and span.parent.span_id == parent.context.span_id}


def only(spans: Sequence[ReadableSpan], name: str) -> ReadableSpan:
    [found] = [span for span in spans if span.name == name]
    return found


@pytest.mark.virtual_time
async def test_a_call_is_a_trace_a_turn_a_span_and_its_stages_are_below(traced: Traced) -> None:
    spans = traced.call(await events_of("one_turn"))
    call, turn = only(spans, "call"), only(spans, "turn")
    assert call.parent is None and call.kind is SpanKind.SERVER and call.start_time == BEGAN * 1e9
    assert dict(call.attributes or {}) == {
        "voicepipe.call.id": "rtc_1", "voicepipe.ingress": "websocket", "voicepipe.tenant": "acme",
        "gen_ai.agent.name": "front-desk", "voicepipe.call.end": "caller",
    }  # fmt: skip
    about = call.resource.attributes
    assert about["service.name"] == "voicepipe" and about["service.instance.id"] == "fra1"
    assert about["cloud.region"] == "eu"
    assert below(spans, call) == {"turn": turn}
    stages = below(spans, turn)
    assert set(stages) == {"endpointing", "asr", "chat llama3.2", "tts", "playout", "speaking"}
    parts = below(spans, stages["chat llama3.2"])
    assert set(parts) == {"prefill", "decode"}
    # The stages stand on one clock, that of the turn's record, and meet where one follows from the other.
    at = {name: ms(span, turn) for name, span in (stages | parts).items()}
    told = turn.attributes or {}
    assert at["endpointing"][0] == 0 and at["playout"] == (at["endpointing"][1], told["voicepipe.turn.latency_ms"])
    assert at["prefill"][1] == at["decode"][0] and at["decode"][1] == at["chat llama3.2"][1] == at["tts"][0]
    assert at["speaking"][0] == at["playout"][1] and at["speaking"][1] == ms(turn, turn)[1] > 1000
    assert told["voicepipe.speculation"] == "hit" and told["voicepipe.turn.late"] is False
    assert told["voicepipe.wait.endpointing_ms"] == at["endpointing"][1]
    ahead = {name for name, span in (stages | parts).items() if (span.attributes or {}).get("voicepipe.speculated")}
    assert ahead == {"chat llama3.2", "prefill", "decode", "asr", "tts"}, "all of it ran while the endpointer listened"
    asked = stages["chat llama3.2"].attributes or {}
    assert (asked["gen_ai.operation.name"], asked["gen_ai.provider.name"], asked["gen_ai.request.model"],
            asked["gen_ai.conversation.id"]) == ("chat", "openai", "llama3.2", "rtc_1")  # fmt: skip


@pytest.mark.virtual_time
@pytest.mark.parametrize("scenario", ["one_turn", "server_tool", "client_tool", "origin", "keys_table", "dead_model"])
async def test_no_words_and_no_numbers_are_told(traced: Traced, scenario: str) -> None:
    events = await events_of(scenario)
    said = {text for _, event in events for item in getattr(event, "items", ()) for text in (item.text, item.arguments)}
    said |= {item.text for _, event in events if (item := getattr(event, "item", None))}
    told = "\n".join(span.to_json() for span in traced.call(events))
    for secret in (*filter(None, said), CALLED.caller, CALLED.called):
        assert secret not in told


@pytest.mark.virtual_time
async def test_a_missed_turn_is_an_error_and_shows_what_it_waited_for(traced: Traced) -> None:
    spans = traced.call(await events_of("dead_model"))
    turn = only(spans, "turn")
    assert turn.status.status_code is StatusCode.ERROR and (turn.attributes or {})["error.type"] == "late"
    prefill = only(spans, "prefill")
    assert ms(prefill, turn)[1] - ms(prefill, turn)[0] > 4000, "until the fallback had been said"
    assert not [span for span in spans if span.name == "decode"]
    assert only(spans, "call").status.status_code is StatusCode.UNSET


@pytest.mark.virtual_time
async def test_tools_are_spans(traced: Traced) -> None:
    spans = traced.call(await events_of("server_tool"))
    turn, tool = only(spans, "turn"), only(spans, "execute_tool book")
    assert tool.parent and tool.parent.span_id == turn.context.span_id
    about = tool.attributes or {}
    assert (about["gen_ai.tool.name"], about["voicepipe.speculated"]) == ("book", False)
    assert only(spans, "tool_rounds").parent == only(spans, "chat llama3.2").context


@pytest.mark.virtual_time
async def test_a_greeting_is_a_reply_without_stages(traced: Traced) -> None:
    spans = traced.call(await events_of("greeting_interrupted"))
    reply = only(spans, "reply")
    assert not below(spans, reply) and (reply.attributes or {})["voicepipe.reply.status"] == "cancelled"


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("scenario", "what"), [("repaired_after_its_end_was_sent", "cut_in"), ("barge_in", "barge_in")]
)
async def test_what_turns_out_after_a_turn_was_told_is_an_event_of_the_call(
    traced: Traced, scenario: str, what: str
) -> None:
    call = only(traced.call(await events_of(scenario)), "call")
    assert [event.name for event in call.events] == [what]


@pytest.mark.virtual_time
async def test_what_speculation_has_cost_is_told(traced: Traced) -> None:
    spans = traced.call(await events_of("guess_was_wrong"))
    told = only(spans, "turn").attributes or {}
    assert told["voicepipe.speculation.discarded"] == 1
    assert told["voicepipe.speculation.discarded_ms"] > 0  # type: ignore[operator]


# --- in whose trace


def test_a_call_belongs_to_its_callers_trace(traced: Traced) -> None:
    origin = Origin(trace=TraceContext(f"00-{TRACE}-{PARENT}-01", "vendor=1"))
    [call] = traced.call((), origin)
    assert call.parent and format_span_id(call.parent.span_id) == PARENT
    assert format_trace_id(call.context.trace_id) == TRACE and call.context.trace_state.to_header() == "vendor=1"


@pytest.mark.parametrize(
    ("sample", "parent", "traced_calls"),
    [(1.0, "00", 0), (1.0, "01", 1), (0.0, "01", 1), (0.0, "00", 0), (0.0, "", 0), (1.0, "", 1)],
)
def test_who_decides_whether_a_call_is_traced(sample: float, parent: str, traced_calls: int) -> None:
    made = Traced(traces={"endpoint": "http://127.0.0.1:4318", "sample": sample})
    context = TraceContext(f"00-{TRACE}-{PARENT}-{parent}") if parent else TraceContext()
    assert len(made.call((), Origin(trace=context))) == traced_calls
    made.close()


@pytest.mark.parametrize(
    "header", ["nonsense", f"00-{TRACE}-{PARENT}", f"00-{'0' * 32}-{PARENT}-01", f"ff-{TRACE}-{PARENT}-01", "é" * 55]
)
def test_a_header_that_makes_no_sense_begins_a_trace_of_our_own(traced: Traced, header: str) -> None:
    [call] = traced.call((), Origin(trace=TraceContext(header, "=,=;\0")))
    assert call.parent is None and format_trace_id(call.context.trace_id) != TRACE


@pytest.mark.parametrize("parent", ["", f"00-{TRACE}-{PARENT}-01"])
def test_who_is_told_of_a_call_knows_its_trace(traced: Traced, parent: str) -> None:
    [call] = traced.call((), Origin(trace=TraceContext(parent)))
    assert traced.facts and traced.facts.trace_id == format_trace_id(call.context.trace_id)


@pytest.mark.parametrize("parent", ["", f"00-{TRACE}-{PARENT}-00"])
def test_a_call_that_is_not_sampled_names_no_trace(parent: str) -> None:
    made = Traced(traces={"endpoint": "http://127.0.0.1:4318", "sample": 0.0})
    made.call((), Origin(trace=TraceContext(parent)))
    assert made.facts and made.facts.trace_id == ""
    made.close()


def test_a_latency_in_prometheus_leads_to_the_trace_of_its_call(traced: Traced) -> None:
    metrics = Metrics(Config().pop, lambda: HEALTHY, traced.traces)
    call = LiveCall(LastTurns(), 300, "acme", "front-desk", (metrics,), traces=traced.traces)
    call.answered("rtc_1", WebSocketLine(PcmFormat(), PcmFormat()), BEGAN)
    assert call.facts
    for _, event in virtual_time.run(events_of("one_turn")):
        call.note(event, BEGAN)
    text, _ = metrics.read("application/openmetrics-text; version=1.0.0")()
    lines = [line for line in text.decode().splitlines() if "# {" in line]
    assert len(lines) == 1 and lines[0].startswith("voicepipe_turn_latency_seconds_bucket")
    assert f'# {{trace_id="{call.facts.trace_id}"}}' in lines[0]


def test_a_call_shows_its_network_and_an_error(traced: Traced) -> None:
    traced.traces.begin(FACTS)
    traced.traces.ended(
        FACTS, CallEnd(reason="error", at=1060.0, network=NetworkQuality(loss_percent=1.234, rtt_ms=31.0))
    )
    traced.traces.left(FACTS)
    [call] = traced.spans()
    about = call.attributes or {}
    assert (about["voicepipe.network.loss_percent"], about["voicepipe.network.rtt_ms"]) == (1.23, 31.0)
    assert "voicepipe.network.jitter_ms" not in about
    assert call.status.status_code is StatusCode.ERROR and about["voicepipe.call.end"] == "error"


# --- sending


class Stuck(SpanExporter):
    """Takes nothing until it is let go."""

    def __init__(self, result: SpanExportResult = SpanExportResult.SUCCESS) -> None:
        self.result = result
        self.go = threading.Event()
        self.asked = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked.set()
        self.go.wait(60)
        return self.result

    def shutdown(self) -> None:
        self.go.set()


def many(sender: SpanSender, calls: int) -> OtelTracer:
    traces = OtelTracer(Config(), sender)
    for _ in range(calls):
        traces.begin(FACTS)
        traces.ended(FACTS, CallEnd(reason="caller", at=1001.0))
        traces.left(FACTS)
    return traces


def test_what_waits_is_bounded_and_what_is_dropped_counts() -> None:
    exporter = Stuck()
    sender = SpanSender(exporter)
    many(sender, otlp.AT_ONCE)
    assert exporter.asked.wait(60)  # The first request is under way.
    traces = many(sender, otlp.WAITING + 7)
    assert traces.dropped == 7
    text, _ = Metrics(Config().pop, lambda: HEALTHY, traces).read("")()
    assert 'voicepipe_trace_spans_dropped_total{pop="local",region="local"} 7.0' in text.decode()
    exporter.go.set()
    sender.shutdown()  # type: ignore[no-untyped-call]
    assert traces.dropped == 7


def test_what_the_collector_refuses_counts() -> None:
    exporter = Stuck(SpanExportResult.FAILURE)
    exporter.go.set()
    sender = SpanSender(exporter)
    traces = many(sender, 3)
    sender.shutdown()  # type: ignore[no-untyped-call]
    assert traces.dropped == 3


async def test_a_pop_that_ends_waits_for_no_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "CLOSE_S", 0.1)
    exporter = Stuck()
    sender = SpanSender(exporter)
    many(sender, 3)
    await sender.close()
    assert exporter.go.is_set(), "what still waited was woken"


async def test_a_pop_that_ends_sends_what_is_left() -> None:
    exporter = InMemorySpanExporter()
    sender = SpanSender(exporter)
    many(sender, 3)
    await sender.close()
    assert len(exporter.get_finished_spans()) == 3
