"""Calls and turns as spans of OpenTelemetry's SDK, which `otlp.py` sends."""

import time
from collections.abc import Callable

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind, StatusCode, format_trace_id, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from voicepipe import __version__
from voicepipe.call_settings import TraceContext
from voicepipe.config import Config
from voicepipe.observe.call_followers import CallEnd, CallFacts, CallTracer
from voicepipe.observe.last_turns import FullTurn
from voicepipe.observe.otlp import SpanSender
from voicepipe.observe.spans import AnsweringModel, Attributes, StageSpan, about_turn, stages


class OtelTracer(CallTracer):
    """Traces calls by OpenTelemetry: one trace for each call, a span for each turn, spans of its stages below. `clock`
    gives Unix seconds."""

    def __init__(self, config: Config, sender: SpanSender, clock: Callable[[], float] = time.time) -> None:
        about = {
            "service.name": "voicepipe",
            "service.version": __version__,
            "service.instance.id": config.pop.id,
            "cloud.region": config.pop.region,
        }
        sampler = ParentBased(TraceIdRatioBased(config.traces.sample))
        provider = TracerProvider(sampler, Resource(about), shutdown_on_exit=False)
        provider.add_span_processor(sender)
        self._tracer = provider.get_tracer("voicepipe", __version__)
        self._sender = sender
        self._model = _model(config)
        self._clock = clock
        self._calls: dict[str, Span] = {}
        """The spans of traced calls, by the calls' ids."""

    @property
    def dropped(self) -> int:
        return self._sender.dropped

    def begin(self, call: CallFacts) -> str:
        about: Attributes = {
            "voicepipe.call.id": call.id,
            "voicepipe.ingress": call.line,
            "voicepipe.tenant": call.tenant,
            "gen_ai.agent.name": call.agent,
        }
        span = self._tracer.start_span("call", _context(call.trace), SpanKind.SERVER, about, start_time=_ns(call.since))
        if not span.is_recording():
            return ""
        self._calls[call.id] = span
        return format_trace_id(span.get_span_context().trace_id)

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        if not (parent := self._calls.get(call.id)):
            return
        now, began = self._clock(), full.turn.at - (full.record.at_commit or 0.0) / 1000
        name = "turn" if full.spoken else "reply"
        span = self._tracer.start_span(name, _below(parent), attributes=about_turn(full), start_time=_ns(began))
        if full.turn.missed:
            span.set_status(StatusCode.ERROR)
        for stage in stages(full, 1000 * (now - began), self._model):
            self._add(stage, span, began)
        span.end(_ns(now))

    replied = turn

    def cut_in(self, call: CallFacts, full: FullTurn) -> None:
        # The turn's own span has been sent.
        self._happened(call, "cut_in", {"voicepipe.turn.number": full.number})

    def barged_in(self, call: CallFacts) -> None:
        self._happened(call, "barge_in", {})

    def ended(self, call: CallFacts, end: CallEnd) -> None:
        if not (span := self._calls.get(call.id)):
            return
        span.set_attribute("voicepipe.call.end", end.reason)
        network = end.network
        if end.reason == "error":
            span.set_status(StatusCode.ERROR)
        for figure, value in (("loss_percent", network.loss_percent), ("jitter_ms", network.jitter_ms),
                              ("rtt_ms", network.rtt_ms)):  # fmt: skip
            if value is not None:
                span.set_attribute(f"voicepipe.network.{figure}", round(value, 2))
        span.end(_ns(end.at))

    def left(self, call: CallFacts) -> None:
        self._calls.pop(call.id, None)

    def _add(self, stage: StageSpan, parent: Span, began: float) -> None:
        span = self._tracer.start_span(
            stage.name, _below(parent), attributes=stage.attributes, start_time=_ns(began + stage.begin / 1000)
        )
        if "error.type" in stage.attributes:
            span.set_status(StatusCode.ERROR)
        for part in stage.parts:
            self._add(part, span, began)
        span.end(_ns(began + stage.end / 1000))

    def _happened(self, call: CallFacts, what: str, about: Attributes) -> None:
        if span := self._calls.get(call.id):
            span.add_event(what, about, _ns(self._clock()))


def _model(config: Config) -> AnsweringModel:
    chosen = config.engines.llm
    names = {"vllm": config.vllm.model, "openai": config.openai.model, "auto": config.openai.model}
    return AnsweringModel(chosen, names.get(chosen, ""))


def _context(trace: TraceContext) -> Context:
    """The context of a trace; empty where there is none, or none that is valid."""
    read = TraceContextTextMapPropagator().extract
    return read({"traceparent": trace.parent, "tracestate": trace.state}, Context()) if trace.parent else Context()


def _below(parent: Span) -> Context:
    return set_span_in_context(parent, Context())


def _ns(unix_s: float) -> int:
    return round(unix_s * 1e9)
