"""Metrics of turns for Prometheus: how late they were, what they waited for, and how their replies were made. All of it
comes from each turn's record."""

from typing import get_args

import msgspec

from voicepipe.call_api import DoorKind
from voicepipe.conversation.timing import TurnSummary
from voicepipe.observe.call_followers import CallFacts, CallFollower
from voicepipe.observe.last_turns import FullTurn
from voicepipe.observe.metric_families import Families
from voicepipe.observe.turn_waits import TurnWaits, waits

LATENCY_S = (*(n / 50 for n in range(1, 21)), 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0)
"""Bounds of the histogram: steps of 20 ms up to 400 ms, where a budget is kept or missed."""
WAIT_S = (0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0)
TOKEN_S = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5)
REALTIME = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2.0, 5.0)
STAGES = ("asr", "first_token", "llm", "tts")
LOWERED = ("ducked", "held")


class TurnMetrics(CallFollower):
    """The metrics of a PoP's turns."""

    def __init__(self, families: Families) -> None:
        counter, histogram = families.counter, families.histogram
        self._latency = histogram(
            "voicepipe_turn_latency_seconds",
            "From the end of the caller's voice to the first audible packet of the answer.",
            LATENCY_S,
            "ingress",
        )
        self._waits = histogram(
            "voicepipe_turn_wait_seconds",
            "How much of a turn's latency was spent waiting for a stage (its critical path).",
            WAIT_S, "ingress", "stage",
        )  # fmt: skip
        self._stages = histogram(
            "voicepipe_stage_seconds",
            "How long a stage took, waited for or not. asr: to the words, once they were asked for; first_token: of "
            "the model; llm: to its first phrase; tts: to that phrase's first sound.", WAIT_S, "ingress", "stage",
        )  # fmt: skip
        self._token = histogram(
            "voicepipe_llm_token_interval_seconds",
            "Mean time between the tokens of a reply's first phrase; its inverse is tokens a second.",
            TOKEN_S,
        )
        self._tokens = counter("voicepipe_llm_tokens", "Tokens of replies to turns, as far as they were made.")
        self._realtime = histogram(
            "voicepipe_tts_realtime_factor",
            "Seconds for which the voice was waited for, for each second of a reply's sound; over 1 it is too slow.",
            REALTIME,
        )  # fmt: skip
        self._turns = counter("voicepipe_turns", "Turns of callers for which a reply was begun.", "ingress")
        self._late = counter("voicepipe_turns_late", "Turns answered later than pop.budget_ms.", "ingress")
        self._missed = counter("voicepipe_turns_missed", "Turns whose reply failed, or was the fallback.", "ingress")
        self._cut_ins = counter("voicepipe_cut_ins", "Replies that began before the caller had finished.", "ingress")
        self._barge_ins = counter(
            "voicepipe_barge_ins", "Replies to turns that callers interrupted, by voice or keys.", "ingress"
        )
        self._false = counter(
            "voicepipe_false_interruptions",
            "Times that a reply to a turn became quieter (ducked) or stopped (held) for a sound, and went on since it "
            "was no interruption.", "ingress", "effect",
        )  # fmt: skip
        self._speculations = counter(
            "voicepipe_speculations", "Turns whose reply was prepared (hit) or not (miss).", "result"
        )
        self._discarded = counter(
            "voicepipe_speculations_discarded", "Prepared replies of answered turns that were dropped."
        )
        self._early_tools = counter(
            "voicepipe_early_tools",
            "Tools that only read, begun before an answered turn was over: used by its reply, or dropped.", "result",
        )  # fmt: skip
        self._lost = counter("voicepipe_speculation_discarded_seconds", "What engines worked for them.")
        self._begin()

    def _begin(self) -> None:
        """Begin series at 0: where a series begins with its first event, Prometheus sees no increase."""
        for kind in get_args(DoorKind):
            for of_kind in (self._turns, self._late, self._missed, self._cut_ins, self._barge_ins):
                of_kind(kind)
            self._latency(kind)
            for stage in TurnWaits.__struct_fields__:
                self._waits(kind, stage)
            for effect in LOWERED:
                self._false(kind, effect)
        for result in ("hit", "miss"):
            self._speculations(result)
        for result in ("used", "dropped"):
            self._early_tools(result)
        for alone in (self._discarded, self._lost, self._tokens):
            alone()
        for each in (self._token, self._realtime):
            each()

    # Told as it happens.

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        turn, record, kind = full.turn, full.record, call.line
        self._turns(kind).inc()
        for happened, counter in ((turn.late, self._late), (turn.missed, self._missed), (turn.cut_in, self._cut_ins)):
            if happened:
                counter(kind).inc()
        if turn.latency_ms is not None and not turn.by_request:
            self._latency(kind).observe(turn.latency_ms / 1000, {"trace_id": call.trace_id} if call.trace_id else None)
        if not turn.by_request and (waited := waits(record, full.tools)):
            for stage, ms in msgspec.structs.asdict(waited).items():
                self._waits(kind, stage).observe(ms / 1000)
        if record.speculation:
            self._speculations(record.speculation).inc()
        if record.discarded:
            self._discarded().inc(record.discarded)
            self._lost().inc((record.discarded_ms or 0.0) / 1000)
        self._early_tools("used").inc(sum(use.early for use in full.tools))
        self._early_tools("dropped").inc(record.tools_dropped)
        self._reply(kind, record)

    def _reply(self, kind: str, record: TurnSummary) -> None:
        for stage, ms in _stages(record).items() if not record.unpaced else ():
            self._stages(kind, stage).observe(ms / 1000)
        if (interval_ms := _between_tokens(record)) is not None:
            self._token().observe(interval_ms / 1000)
        if record.tokens:
            self._tokens().inc(record.tokens)
        if record.sound_ms and record.voicing_ms:
            self._realtime().observe(record.voicing_ms / record.sound_ms)
        for effect, times in (("ducked", record.ducked), ("held", record.held)):
            if times:
                self._false(kind, effect).inc(times)

    def barged_in(self, call: CallFacts) -> None:
        self._barge_ins(call.line).inc()

    def cut_in(self, call: CallFacts, full: FullTurn) -> None:
        self._cut_ins(call.line).inc()


def _stages(record: TurnSummary) -> dict[str, float]:
    first_token = None
    if record.at_prepare is not None and record.at_token is not None:
        first_token = record.at_token - record.at_prepare
    took = zip(STAGES, (record.asr, first_token, record.llm, record.tts), strict=True)
    return {stage: ms for stage, ms in took if ms is not None}


def _between_tokens(record: TurnSummary) -> float | None:
    """Average time between tokens in ms. After the first phrase the model is not read at its own pace, but at that of
    the voice."""
    if record.at_token is None or record.at_phrase is None or record.phrase_tokens < 2 or record.tool:
        return None
    return (record.at_phrase - record.at_token) / (record.phrase_tokens - 1)
