"""The spans of a turn: when each stage ran, and figures. Pure, and without any words of the call.

Attributes are OpenTelemetry's where it has some (`gen_ai...`, `error.type`), and else begin with `voicepipe.`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import asdict

from voicepipe.conversation.events import ToolUse
from voicepipe.conversation.timing import TurnSummary
from voicepipe.observe.last_turns import FullTurn
from voicepipe.observe.turn_waits import waits

Attributes = dict[str, str | int | float | bool]
SPECULATED = "voicepipe.speculated"
"""An attribute of a stage that began before *commit*: while it was not certain yet that the turn was over."""


class AnsweringModel(NamedTuple):
    """The language model that answers."""

    provider: str
    """As `engines.llm` names it."""
    name: str = ""
    """Empty: unknown."""


class StageSpan(NamedTuple):
    """A span of one stage, below its turn's."""

    name: str
    begin: float
    """Milliseconds after the caller's last voiced sample."""
    end: float
    attributes: Attributes
    parts: tuple["StageSpan", ...] = ()


def stages(full: FullTurn, over: float, model: AnsweringModel) -> Iterator[StageSpan]:
    """The stages of a turn whose reply was over `over` milliseconds after the caller's last voiced sample. If the
    answer was missed, the stage that did not end lasts until then."""
    record, missed = full.record, full.turn.missed
    if record.at_commit is not None:
        reason = {"voicepipe.endpoint.reason": record.endpoint_reason} if record.endpoint_reason else {}
        yield StageSpan(
            "endpointing", 0.0, record.at_commit, {"voicepipe.endpoint.confident": record.confident, **reason}
        )
    if record.at_settle is not None and (record.at_words is not None or missed):
        yield _ahead("asr", record.at_settle, over if record.at_words is None else record.at_words, record)
    if record.at_prepare is not None and (record.at_token is not None or missed):
        yield _chat(full, record.at_prepare, over if record.at_phrase is None else record.at_phrase, model)
    for use in full.tools:
        if use.at is not None:
            yield _tool(use, use.at, over, record)
    if record.at_phrase is not None and (record.at_speech is not None or missed):
        yield _ahead("tts", record.at_phrase, over if record.at_speech is None else record.at_speech, record)
    if record.at_audible is not None:
        ready = max(record.at_commit or 0.0, record.at_speech or 0.0)
        yield StageSpan("playout", min(ready, record.at_audible), record.at_audible, {})
        yield StageSpan("speaking", record.at_audible, over, {})


def _ahead(name: str, begin: float, end: float, record: TurnSummary, attributes: Attributes | None = None) -> StageSpan:
    """A stage that may begin before the turn is confirmed."""
    speculated = record.at_commit is not None and begin < record.at_commit
    return StageSpan(name, begin, end, {SPECULATED: speculated, **(attributes or {})})


def _chat(full: FullTurn, begin: float, end: float, model: AnsweringModel) -> StageSpan:
    """The language model's spans: up to its first phrase, as long as it takes to read the prompt, and from there on.
    With tools the second part contains these, and each time that the model is asked again."""
    record = full.record
    first = end if record.at_token is None else record.at_token
    parts = [_ahead("prefill", begin, first, record)]
    if record.at_token is not None:
        parts.append(_ahead("tool_rounds" if record.tool else "decode", first, end, record))
    named: Attributes = {"gen_ai.request.model": model.name} if model.name else {}
    stage = _ahead(f"chat {model.name}".strip(), begin, end, record, {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": model.provider,
        **named,
        "gen_ai.conversation.id": full.turn.call,
        "gen_ai.usage.input_tokens": full.input_tokens,
        "gen_ai.usage.output_tokens": full.output_tokens,
    })  # fmt: skip
    return stage._replace(parts=tuple(parts))


def _tool(use: ToolUse, begin: float, over: float, record: TurnSummary) -> StageSpan:
    attributes: Attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": use.name}
    if use.failed:
        attributes["error.type"] = "tool_failed"
    if use.took is None:
        attributes["voicepipe.tool.runs_on"] = True
    return _ahead(f"execute_tool {use.name}", begin, over if use.took is None else begin + use.took, record, attributes)


def about_turn(full: FullTurn) -> Attributes:
    """Attributes of the turn's own span."""
    turn, record = full.turn, full.record
    known: dict[str, str | int | float | bool | None] = {
        "voicepipe.turn.id": turn.id or None,
        "voicepipe.turn.number": full.number,
        "voicepipe.reply.status": full.status,
        "error.type": _failure(full) if turn.missed else None,
    }
    if full.spoken:
        known |= {
            "voicepipe.turn.latency_ms": turn.latency_ms,
            "voicepipe.turn.late": turn.late,
            "voicepipe.turn.cut_in": turn.cut_in,
            "voicepipe.turn.by_request": turn.by_request or None,
            "voicepipe.turn.ladder": record.ladder or None,
            "voicepipe.speculation": record.speculation or None,
            "voicepipe.speculation.discarded": record.discarded,
            "voicepipe.speculation.discarded_ms": record.discarded_ms,
        }
        if waited := waits(record):
            known |= {f"voicepipe.wait.{stage}_ms": round(ms, 1) for stage, ms in asdict(waited).items()}
    return {name: value for name, value in known.items() if value is not None}


def _failure(full: FullTurn) -> str:
    """The kind of failure of a missed turn; there are few kinds."""
    record = full.record
    if record.refused:
        return "refused"
    if record.broken:
        return "broken"
    return "late" if record.ladder == "fallback" else "failed"
