"""The figures of one PoP for Prometheus, by its conventions for names and units. The call path knows nothing of it: it
hangs on the record of each turn and on the end of each call.

Counters and histograms grow as turns and calls end. What is true at the moment (`present.py`) is read when somebody
asks.
"""

from collections.abc import Callable, Iterable
from typing import get_args

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from voicepipe.call_api import DoorKind, Refusal
from voicepipe.config import PopConfig
from voicepipe.errors import Reason
from voicepipe.health import Health
from voicepipe.line_quality import Network
from voicepipe.observe.calls import CallFacts, CallFollower
from voicepipe.observe.mos import mos
from voicepipe.observe.present import HERE, present
from voicepipe.observe.scrapes import ReadNow, written
from voicepipe.observe.traces import UNTRACED, Traces
from voicepipe.observe.turns import FullTurn
from voicepipe.observe.waits import Waits, waits
from voicepipe.turn.timing import TurnSummary

LATENCY_S = (*(n / 50 for n in range(1, 21)), 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0)
"""Bounds of the histogram: steps of 20 ms up to 400 ms, where a budget is kept or missed."""
WAIT_S = (0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0)
LOSS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
MOS = (1.5, 2.0, 2.5, 3.0, 3.5, 3.8, 4.0, 4.2, 4.3, 4.4, 4.5)
JITTER_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
ENDS = (
    "caller", "agent", "no_input", "transferred", "max_length", "idle", "shutdown", "error", "closed", "not_begun",
)  # fmt: skip
"""How calls end: `CallEnded.reason`, and those of doors."""


class Metrics(CallFollower):
    """One PoP's. Implements `call_api.MetricsApi`. `health` is `Pop.health`; turns name their calls' `traces`."""

    def __init__(self, pop: PopConfig, health: Callable[[], Health], traces: Traces = UNTRACED) -> None:
        self._here = (pop.id, pop.region)
        self._pop = pop
        self._health = health
        self._traces = traces
        self._registry = registry = CollectorRegistry()
        self._now = ReadNow()
        registry.register(self._now)

        def counter(name: str, told: str, *labels: str) -> Counter:
            return Counter(f"voicepipe_{name}", told, (*HERE, *labels), registry=registry)

        def histogram(name: str, told: str, bounds: Iterable[float], *labels: str) -> Histogram:
            return Histogram(f"voicepipe_{name}", told, (*HERE, *labels), registry=registry, buckets=tuple(bounds))

        self._latency = histogram(
            "turn_latency_seconds", "From the end of the caller's voice to the first audible packet of the answer.",
            LATENCY_S, "ingress",
        )  # fmt: skip
        self._waits = histogram(
            "turn_wait_seconds", "How much of a turn's latency was spent waiting for a stage (its critical path).",
            WAIT_S, "ingress", "stage",
        )  # fmt: skip
        self._stages = histogram(
            "stage_seconds", "How long a stage took, waited for or not; llm: to its first phrase.",
            WAIT_S, "ingress", "stage",
        )  # fmt: skip
        self._turns = counter("turns", "Turns of callers for which a reply was begun.", "ingress")
        self._late = counter("turns_late", "Turns answered later than pop.budget_ms.", "ingress")
        self._missed = counter("turns_missed", "Turns whose reply failed, or was the fallback.", "ingress")
        self._cut_ins = counter("cut_ins", "Replies that began before the caller had finished.", "ingress")
        self._barge_ins = counter(
            "barge_ins", "Replies to turns that callers interrupted, by voice or keys.", "ingress"
        )
        self._speculations = counter("speculations", "Turns whose reply was prepared (hit) or not (miss).", "result")
        self._discarded = counter("speculations_discarded", "Prepared replies of answered turns that were dropped.")
        self._lost = counter("speculation_discarded_seconds", "What engines worked for them.")
        self._calls = counter("calls", "Calls that have ended, by what ended them.", "ingress", "reason")
        self._refusals = counter("refusals", "Calls that were not taken, also before admission.", "ingress", "reason")
        self._loss = histogram(
            "call_loss_ratio", "Of a call's packets from its caller, the missing ones.", LOSS, "ingress"
        )
        self._jitter = histogram("call_jitter_seconds", "Jitter of a call's packets.", JITTER_S, "ingress")
        self._mos = histogram("call_mos", "How callers sound by their network (ITU-T G.107), 1 to 4.4.", MOS, "ingress")
        self._in_progress = Gauge(
            "voicepipe_calls_in_progress", "Calls that are answered now.", (*HERE, "ingress"), registry=registry
        )
        self._begin()

    def _begin(self) -> None:
        """At 0: of a series that begins with its first event, Prometheus sees no increase."""
        for kind in get_args(DoorKind):
            for of_kind in (self._turns, self._late, self._missed, self._cut_ins, self._barge_ins, self._latency,
                            self._in_progress):  # fmt: skip
                of_kind.labels(*self._here, kind)
            for stage in Waits.__struct_fields__:
                self._waits.labels(*self._here, kind, stage)
            for reason in ENDS:
                self._calls.labels(*self._here, kind, reason)
            for reason in get_args(Reason):
                self._refusals.labels(*self._here, kind, reason)
        for result in ("hit", "miss"):
            self._speculations.labels(*self._here, result)
        for alone in (self._discarded, self._lost):
            alone.labels(*self._here)

    # Told as it happens.

    def began(self, call: CallFacts) -> None:
        self._in_progress.labels(*self._here, call.line).inc()

    def left(self, call: CallFacts) -> None:
        self._in_progress.labels(*self._here, call.line).dec()

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        kind, turn, record = call.line, full.turn, full.record
        self._turns.labels(*self._here, kind).inc()
        for happened, counter in ((turn.late, self._late), (turn.missed, self._missed), (turn.cut_in, self._cut_ins)):
            if happened:
                counter.labels(*self._here, kind).inc()
        if turn.latency_ms is not None and not turn.by_request:
            trace_id = self._traces.trace_id(call.id)
            exemplar = {"trace_id": trace_id} if trace_id else None
            self._latency.labels(*self._here, kind).observe(turn.latency_ms / 1000, exemplar)
        if not turn.by_request and (waited := waits(record)):
            for stage, ms in msgspec.structs.asdict(waited).items():
                self._waits.labels(*self._here, kind, stage).observe(ms / 1000)
        for stage, ms in _stages(record).items() if not record.unpaced else ():
            self._stages.labels(*self._here, kind, stage).observe(ms / 1000)
        if record.speculation:
            self._speculations.labels(*self._here, record.speculation).inc()
        if record.discarded:
            self._discarded.labels(*self._here).inc(record.discarded)
            self._lost.labels(*self._here).inc((record.discarded_ms or 0.0) / 1000)

    def barged_in(self, call: CallFacts) -> None:
        self._barge_ins.labels(*self._here, call.line).inc()

    def cut_in(self, call: CallFacts) -> None:
        self._cut_ins.labels(*self._here, call.line).inc()

    def ended(self, call: CallFacts, reason: str, network: Network, now: float) -> None:
        kind = call.line
        self._calls.labels(*self._here, kind, reason).inc()
        if network.loss_percent is not None:
            self._loss.labels(*self._here, kind).observe(network.loss_percent / 100)
        if network.jitter_ms is not None:
            self._jitter.labels(*self._here, kind).observe(network.jitter_ms / 1000)
        if (grade := mos(network)) is not None:
            self._mos.labels(*self._here, kind).observe(grade)

    def refused(self, refusal: Refusal) -> None:
        self._refusals.labels(*self._here, refusal.door, refusal.reason).inc()

    # Asked.

    def read(self, accept: str) -> Callable[[], tuple[bytes, str]]:
        """As `call_api.MetricsApi.read`."""
        self._now.metrics = list(present(self._here, self._pop, self._health(), self._traces.dropped))
        return written(self._registry, accept)


def _stages(record: TurnSummary) -> dict[str, float]:
    """In ms; without those that did not happen."""
    first_token = None
    if record.at_prepare is not None and record.at_token is not None:
        first_token = record.at_token - record.at_prepare
    took = {"asr": record.asr, "first_token": first_token, "llm": record.llm, "tts": record.tts}
    return {stage: ms for stage, ms in took.items() if ms is not None}
