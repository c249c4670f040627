"""Judges a turn by what was sent and received. Pure: timelines in, results out.

The definitions are those of the project's design: the heard gap runs from the hand-over of the block that holds the
caller's last voiced sample to the arrival of the first audible sample of the answer.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from latency_probes import clips
from latency_probes.barge_in import judge_over
from latency_probes.records import MISSED_S, CallRecord, CallResult, Said, TurnResult
from latency_probes.timeline import AUDIBLE_DBFS, CREATED, WIRE_RATE, Reply, Timeline, frame_levels
from latency_probes.transcripts import (
    after_acknowledgement,
    contains,
    is_acknowledgement,
    is_fallback,
    matches,
    word_error_rate,
)
from voicepipe.audio import Pcm, samples_to_ms

RECORD = "voicepipe.turn"
"""The key of `response.metadata` under which a server may explain a turn."""
REPAIR_S = 0.25
"""After a cut-in the reply has to be silent this soon after the caller goes on."""


def judge_call(record: CallRecord, references: Mapping[str, Pcm]) -> list[TurnResult]:
    """Every turn of a call, judged. `references`: undisturbed replies (int16[n] at 24 kHz) by the question's id."""
    return [judge(said, record.timeline, references.get(said.turn.utterance.id)) for said in record.said]


def greeting_ms(record: CallRecord) -> float | None:
    """From asking for the call to the first sound of its greeting; None: there was none before the caller spoke."""
    line = record.timeline
    until = line.sent_at(record.said[0].start) if record.said else float("inf")
    heard = [reply.first_audible.arrived for reply in line.replies.values() if reply.first_audible]
    first = min(heard, default=float("inf"))
    return 1000 * (first - line.began) if line.began and first < until else None


def routed(record: CallRecord) -> CallResult | None:
    """What the directory said of the call, and when it had begun; None: none was asked, or no PoP took the call."""
    route = record.timeline.route
    if route is None:
        return None
    return CallResult(
        number=record.plan.number,
        pop=route.pop,
        turn_ms_est=route.turn_ms_est,
        degraded=route.degraded,
        asked=route.asked,
        tries=route.tries,
        created_ms=record.timeline.setup.get(CREATED),
        greeting_ms=greeting_ms(record),
    )


def judge(said: Said, line: Timeline, reference: Pcm | None = None) -> TurnResult:
    """One turn, judged; `reference` is the reply to the same question when nothing came over it."""
    utterance, (first, last) = said.turn.utterance, said.speech.voiced
    began, ended = line.sent_at(said.start + first), line.sent_at(said.start + last - 1)
    answer = answer_of(said, line, ended)
    cut_in = next((reply for reply in became_audible(line, began, ended)), None)
    heard = transcript(line, began, said)
    result = TurnResult(
        id=said.turn.id,
        kind=said.turn.kind,
        voice=utterance.voice,
        noise=utterance.noise,
        text=utterance.text,
        heard=heard,
        reply=answer.text if answer else "",
        outcome=outcome(answer, became_audible(line, ended, said.until), clips.intents()[utterance.intent].expect),
        cut_in=cut_in is not None,
        word_errors=word_error_rate(utterance.text, heard) if heard else None,
        place=utterance.place,
        pop=line.route.pop if line.route else "",
    )
    if answer and answer.first_audible:
        result.gap_ms = (answer.first_audible.arrived - ended) * 1000
        result.played_ms = (answer.first_audible.played - ended) * 1000
        result.over = judge_over(said, line, answer, reference)
    if said.speech.resumed:
        result.pause_ms = samples_to_ms(pause_of(said), WIRE_RATE)
    if cut_in and said.speech.resumed:
        result.silenced = silenced(said, line, cut_in)
        result.repaired = result.silenced and understood(said, heard)
    explained = cut_in or answer
    if explained:
        response = response_of(line, explained.response_id)
        result.status = str(response.get("status", ""))
        result.stages, result.flags, result.labels = server_record(response)
    return result


def answer_of(said: Said, line: Timeline, ended: float) -> Reply | None:
    """The answer that became audible within 4 s of the caller's last voiced sample."""
    reply = line.answer(after=ended)
    heard = reply.first_audible if reply else None
    return reply if heard and heard.arrived <= min(said.until, ended + MISSED_S) else None


def became_audible(line: Timeline, after: float, until: float) -> list[Reply]:
    """The replies whose first audible sample arrived between these seconds."""
    replies = line.replies.values()
    return [reply for reply in replies if reply.first_audible and after < reply.first_audible.arrived <= until]


def went_on(said: Said, line: Timeline) -> bool:
    """Whether an answer that began before the caller's last word was still to be heard after it."""
    began, ended = (line.sent_at(said.start + at) for at in (said.speech.voiced[0], said.speech.voiced[1] - 1))
    return any(
        _last_audible(reply) > ended + REPAIR_S
        for reply in became_audible(line, began, ended)
        if not is_acknowledgement(reply.text)
    )


def answered_late(said: Said, line: Timeline) -> bool:
    """Whether a reply acknowledged first and then answered. When the answer began nobody can tell: it is one sound."""
    ended = line.sent_at(said.start + said.speech.voiced[1] - 1)
    replies = became_audible(line, ended, min(said.until, ended + MISSED_S))
    return any(after_acknowledgement(reply.text) and not is_fallback(reply.text) for reply in replies)


def outcome(answer: Reply | None, replies: list[Reply], expect: list[str]) -> str:
    """See TurnResult.outcome. What counts is everything said in the response that answered."""
    if answer is None:
        return "acknowledged" if any(is_acknowledgement(reply.text) for reply in replies) else "none"
    text = " ".join(reply.text for reply in replies if reply.response_id == answer.response_id)
    if matches(text, expect):
        return "right"
    return "fallback" if is_fallback(text) else "wrong"


def transcript(line: Timeline, began: float, said: Said) -> str:
    """The caller's words as the server transcribed them, over all of the turn's items."""
    until = line.sent_at(said.over_start) if said.over_start else said.until
    done = line.of_type("conversation.item.input_audio_transcription.completed")
    parts = [str(event.data.get("transcript", "")).strip() for event in done if began < event.arrived <= until]
    return " ".join(filter(None, parts))


def pause_of(said: Said) -> int:
    """Samples without voice before the caller resumed."""
    levels = frame_levels(said.speech.pcm[: said.speech.resumed])
    return said.speech.resumed - int(np.flatnonzero(levels > AUDIBLE_DBFS)[-1] + 1) * (WIRE_RATE // 100)


def silenced(said: Said, line: Timeline, reply: Reply) -> bool:
    """Whether the reply that cut in was silent 250 ms after the caller went on."""
    return _last_audible(reply) <= line.sent_at(said.start + said.speech.resumed) + REPAIR_S


def _last_audible(reply: Reply) -> float:
    """Second at which the last audible frame of a reply that was heard arrived."""
    return float(reply.frame_times()[0][frame_levels(reply.pcm) > AUDIBLE_DBFS][-1])


def understood(said: Said, heard: str) -> bool:
    """Whether what was said before the pause and what was said after it were transcribed."""
    utterance = said.turn.utterance
    after = utterance.text.removeprefix(utterance.before)
    return contains(heard, utterance.before) and contains(heard, after)


def response_of(line: Timeline, response_id: str) -> dict[str, Any]:
    """A response as the server told of it when it was done; empty where it never was."""
    responses: list[dict[str, Any]] = [event.data["response"] for event in line.of_type("response.done")]
    return next((item for item in responses if item["id"] == response_id), {})


def server_record(response: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, bool], dict[str, str]]:
    """What the server's own record says of a response: its numbers, its flags, its words. Empty without one."""
    metadata = response.get("metadata") or {}
    try:
        record: Any = json.loads(metadata.get(RECORD, "{}"))
    except (TypeError, ValueError):
        return {}, {}, {}
    if not isinstance(record, dict):
        return {}, {}, {}
    flags = {key: value for key, value in record.items() if isinstance(value, bool)}
    numbers = {
        key: float(value) for key, value in record.items() if isinstance(value, int | float) and key not in flags
    }
    return numbers, flags, {key: value for key, value in record.items() if isinstance(value, str)}
