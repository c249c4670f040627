"""What one probe's call says of a PoP: answered, or what failed, and what it waited for. Pure."""

import json
from typing import Literal, NamedTuple

import msgspec

from latency_probes.failed_call import CallFailed, Step
from latency_probes.measure import RECORD, greeting_ms
from latency_probes.records import CallRecord, Said, TurnResult
from latency_probes.timeline import CREATED, Timeline
from latency_probes.transcripts import is_fallback, matches
from voicepipe.base import call_ids
from voicepipe.conversation.timing import TurnSummary
from voicepipe.observe.turn_waits import waits
from voicepipe.probe.probe_targets import ProbeQuestion, ProbeSeries

Fault = Literal[Step, "greeting", "cut_in", "missed", "wrong", "late"]
"""What was wrong with a call: the step at which it failed; it was not greeted; the agent spoke before the caller had
finished; there was no answer within 4 s, a wrong one, or a late one."""
CERTAIN = ("refused", "resolve", "tls")
"""Faults that a late probe cannot make."""
LONG_WAITS = ("connect", "media", "ended", "missed", "failed")
"""Faults that show after seconds: a little lateness does not make them."""
LITTLE_MS = 500
"""So much lateness leaves a hole in the question that a PoP may take for its end."""
UNKNOWN = "unknown"
GAVE_UP = ("fallback", "stall")
"""Steps of a late reply at which the caller hears no answer."""
MISHEARD = 0.34
"""With more of the words wrong than that, a wrong answer is the recogniser's fault."""


class ProbeVerdict(NamedTuple):
    """The outcome of one call."""

    pop: str
    """The PoP that was called; empty: a directory named none."""
    fault: Fault | None
    stage: str
    """What a late answer waited for, what kept an answer away, or the code with which a call was refused."""
    sure: bool
    """False: the probe's own process was late, which may be the whole fault."""
    says: str
    """The fault in a sentence; empty: there is none."""
    heard_gap_s: float | None = None
    words_wrong: float | None = None
    """Share of the words."""
    right: bool | None = None
    setup_s: float | None = None
    """From asking for the call until it was up."""


def verdict(
    record: CallRecord,
    result: TurnResult | None,
    series: ProbeSeries,
    question: ProbeQuestion,
    lag_ms: float,
) -> ProbeVerdict:
    """`result`: of the one turn; None: the call failed before. `lag_ms`: how late this process itself was, 0 where that
    does not matter."""
    line = record.timeline
    setup_ms = line.setup.get(CREATED, line.setup.get("answer"))
    setup_s = None if setup_ms is None else setup_ms / 1000
    if result is None or not record.said:
        return _failed(record, series, lag_ms)._replace(setup_s=setup_s)
    found, stage, gap_ms, right = _heard(record, result, series, question)
    return ProbeVerdict(
        pop=_pop(line, series),
        fault=found,
        stage=stage,
        sure=found is None or _is_sure(found, (gap_ms or 0.0) - series.its.budget_ms, lag_ms),
        says=_sentence(found, stage, gap_ms, result) if found else "",
        heard_gap_s=None if gap_ms is None else gap_ms / 1000,
        words_wrong=result.word_errors,
        right=right,
        setup_s=setup_s,
    )


def _is_sure(fault: Fault, over_ms: float, lag_ms: float) -> bool:
    """Whether the fault is the PoP's own, though this process was late. `over_ms`: by how much an answer is late."""
    if not lag_ms or fault in CERTAIN:
        return True
    explained = over_ms <= lag_ms if fault == "late" else fault not in LONG_WAITS
    return lag_ms < LITTLE_MS and not explained


def _failed(record: CallRecord, series: ProbeSeries, lag_ms: float) -> ProbeVerdict:
    error = record.error
    failed = error if isinstance(error, CallFailed) else None
    fault: Fault = failed.step if failed else "failed"
    pop = _pop(record.timeline, series) or (failed.pop if failed else "")
    stage = (failed.why if failed else "") or ("" if pop else "directory")
    return ProbeVerdict(pop, fault, stage, _is_sure(fault, 0.0, lag_ms), str(error or "the call failed"))


def _pop(line: Timeline, series: ProbeSeries) -> str:
    """The PoP that was called; empty: a directory named none, or only its telephone."""
    return series.pop or (line.route.pop if line.route else "") or call_ids.pop_of(line.call_id) or ""


def _heard(
    record: CallRecord, result: TurnResult, series: ProbeSeries, question: ProbeQuestion
) -> tuple[Fault | None, str, float | None, bool | None]:
    """The fault, its stage, the gap in ms, and whether the answer was right."""
    line, said = record.timeline, record.said[0]
    summary = turn_of(line, said)
    gap_ms = result.gap_ms
    if result.cut_in:
        return "cut_in", "endpointing", None, None
    text = answer(line, said)
    if result.outcome == "acknowledged" and summary and summary.turn_latency and summary.ladder not in GAVE_UP:
        # "One moment. We open at noon." is one sound: when the answer began in it the server alone knows.
        gap_ms = summary.turn_latency
    elif result.outcome in ("none", "acknowledged") or (summary and summary.ladder in GAVE_UP):
        return "missed", stage_of(summary, None), None, None
    right = matches(text, question.expect) if question.expect else not is_fallback(text)
    if series.its.greets and greeting_ms(record) is None:
        return "greeting", "", gap_ms, right
    if not right:
        misheard = result.word_errors is None or result.word_errors > MISHEARD
        return "wrong", "asr" if misheard else "llm", gap_ms, False
    if gap_ms is not None and gap_ms > series.its.budget_ms:
        return "late", stage_of(summary, gap_ms), gap_ms, True
    return None, "", gap_ms, True


def answer(line: Timeline, said: Said) -> str:
    """All that the agent said after the question."""
    ended = line.sent_at(said.start + said.speech.voiced[1] - 1)
    heard = [reply for reply in line.replies.values() if reply.first_audible and reply.first_audible.arrived > ended]
    return " ".join(reply.text for reply in heard)


def turn_of(line: Timeline, said: Said) -> TurnSummary | None:
    """What the server's own record says of the turn; None: it has none."""
    ended = line.sent_at(said.start + said.speech.voiced[1] - 1)
    for event in reversed(line.of_type("response.done")):
        if event.arrived > ended:
            try:
                told = json.loads((event.data["response"].get("metadata") or {})[RECORD])
                return msgspec.convert(told, TurnSummary, strict=False)
            except (ValueError, LookupError, TypeError, msgspec.ValidationError):
                continue
    return None


def stage_of(summary: TurnSummary | None, gap_ms: float | None) -> str:
    """The stage for which the caller waited longest. `gap_ms`: what the caller waited; None: for ever, and it is the
    first stage that brought nothing."""
    if summary is None:
        return UNKNOWN
    if gap_ms is None:
        for at, stage in ((summary.at_words, "asr"), (summary.at_phrase, "llm"), (summary.at_speech, "tts")):
            if at is None:
                return "tools" if stage == "llm" and summary.tool else stage
        return "playout"
    parts = waits(summary)
    if parts is None or summary.turn_latency is None:
        return UNKNOWN
    named = msgspec.structs.asdict(parts) | {"network": gap_ms - summary.turn_latency}
    del named["acknowledgement"]  # It is only begun where another stage is late.
    longest = max(named, key=lambda name: named[name])
    return "tools" if longest == "llm" and summary.tool else longest


def _sentence(fault: Fault, stage: str, gap_ms: float | None, result: TurnResult) -> str:
    match fault:
        case "late":
            return f"the answer came after {gap_ms:.0f} ms; it waited for {stage}"
        case "missed":
            return f"there was no answer; what it waited for is {stage}"
        case "wrong":
            return f"a wrong answer: {result.reply[:100]!r} to {result.heard[:100]!r}"
        case "greeting":
            return "the agent did not greet"
        case "cut_in":
            return "the agent spoke before the question was over"
    return fault
