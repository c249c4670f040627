"""The PoP's last turns: what was said, how late the answer was, what went wrong. Pure: times are given by who calls.

A turn is something that a caller said and that a reply was begun for: no greeting, no typed message.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from voicepipe.turn.events import ReplyDone

KEPT = 2000
"""Turns at a time, at about 1 KB each; beyond that the oldest goes."""
LONGEST_TEXT = 2000
"""Characters of what was heard, and of what was answered."""
ENGINES = (("at_settle", "at_words"), ("at_prepare", "at_phrase"), ("at_phrase", "at_speech"))
"""Begin and end of what each engine did for a turn: recogniser, model, voice."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller said, and the reply that was begun for it."""

    at: float
    """Unix seconds at which the turn was confirmed."""
    turn_id: str
    heard: str
    call_id: str
    tenant: str
    agent: str


class Stages(msgspec.Struct, frozen=True):
    """Milliseconds, as `TurnRecord.summary` has them; None: did not happen."""

    endpointing: float | None = None
    asr: float | None = None
    llm: float | None = None
    tts: float | None = None
    playout: float | None = None
    hidden: float | None = None
    """Of the engines' time, what passed before the turn was confirmed: the caller did not wait for it."""


class Turn(msgspec.Struct, kw_only=True):
    """A turn as it is listed. Changed once at most: it may turn out later to have been a cut-in."""

    id: str
    at: float
    """Unix seconds at which it was confirmed."""
    call: str
    tenant: str
    agent: str
    latency_ms: float | None
    """None: not timed, because the reply never became audible or the input came faster than real time."""
    by_request: bool
    """The client said how long to wait: never late."""
    late: bool
    missed: bool
    """The reply failed, or the fallback was said in its place."""
    cut_in: bool
    """The caller had not finished."""
    speculation: str
    """ "hit", "miss" or ""."""
    discarded: int
    """Drafts that were dropped."""


class FullTurn(msgspec.Struct, kw_only=True):
    """One turn in full: what was heard and answered, and `TurnRecord.summary` as it was."""

    turn: Turn
    heard: str
    answered: str
    """What the caller heard of it; a tool that the client is to run as [NAME]."""
    record: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept of a turn."""

    turn: Turn
    stages: Stages
    full: FullTurn


class Turns:
    """The last `KEPT` turns of a PoP, oldest first."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self.forgotten_at = 0.0
        """When the newest of those was confirmed that are not kept any more; 0: all are."""

    def add(self, entry: Entry) -> None:
        """A turn's reply is over."""
        self._entries[entry.turn.id] = entry
        if len(self._entries) > KEPT:
            oldest = self._entries.pop(next(iter(self._entries)))
            self.forgotten_at = max(self.forgotten_at, oldest.turn.at)

    def since(self, when: float, tenant: str | None = None) -> Iterator[Entry]:
        """Those confirmed at `when` or later, in the order in which they ended; `tenant`'s, None: everyone's."""
        entries = self._entries.values()
        return (entry for entry in entries if entry.turn.at >= when and tenant in (None, entry.turn.tenant))

    def find(self, turn_id: str, tenant: str | None = None) -> FullTurn | None:
        """None: there is none, it is not kept any more, or it is another tenant's."""
        entry = self._entries.get(turn_id)
        return entry.full if entry and tenant in (None, entry.turn.tenant) else None


def entry(asked: Asked, reply: ReplyDone, budget_ms: float) -> Entry:
    """What is kept of a turn whose reply is over. `budget_ms`: answered later than this is late."""
    record = reply.record
    latency, by_request = record.get("turn_latency"), bool(record.get("by_request"))
    turn = Turn(
        id=asked.turn_id,
        at=asked.at,
        call=asked.call_id,
        tenant=asked.tenant,
        agent=asked.agent,
        latency_ms=latency,
        by_request=by_request,
        late=latency is not None and latency > budget_ms and not by_request,
        missed=reply.status == "failed" or record.get("ladder") == "fallback",
        cut_in=bool(record.get("reopened")) or _cut_unheard(reply),
        speculation=record.get("speculation", ""),
        discarded=record.get("discarded", 0),
    )
    said = [item.text or f"[{item.name}]" for item in reply.items if item.text or item.name]
    full = FullTurn(
        turn=turn,
        heard=asked.heard[:LONGEST_TEXT],
        answered=" ".join(said)[:LONGEST_TEXT],
        record=msgspec.Raw(msgspec.json.encode(record)),
    )
    return Entry(turn, stages(record), full)


def stages(record: dict[str, Any]) -> Stages:
    """Each stage's milliseconds in `TurnRecord.summary`, and what of them was hidden in the silence."""
    confirmed = record.get("at_commit")
    spans = [(record[begin], record[end]) for begin, end in ENGINES if begin in record and end in record]
    hidden = None
    if confirmed is not None and spans:
        hidden = sum(max(0.0, min(end, confirmed) - begin) for begin, end in spans)
    return Stages(record.get("endpoint"), record.get("asr"), record.get("llm"), record.get("tts"),
                  record.get("playout"), hidden)  # fmt: skip


def _cut_unheard(reply: ReplyDone) -> bool:
    """A reply that is cut before a word of it was heard came while the caller had not finished, flagged or not."""
    cut = reply.status == "cancelled" and reply.reason == "turn_detected"
    return cut and not any(item.text for item in reply.items)
