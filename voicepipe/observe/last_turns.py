"""The PoP's last turns: what was said, how late the answer was, what went wrong. Pure: times are passed in.

A turn is something that a caller said and that a reply was begun for: no greeting, no typed message.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from msgspec.structs import astuple

from voicepipe.conversation.events import ReplyDone, ReplyStatus, ToolUse
from voicepipe.conversation.timing import TurnSummary

KEPT = 2000
"""Turns at a time; beyond that the oldest goes."""
MOST_TOOLS = 8
"""Most tools of a turn that are kept."""


@dataclass(frozen=True, slots=True)
class AskedTurn:
    """A caller's turn, for which a reply was begun."""

    at: float
    """Unix seconds at which the turn was confirmed."""
    turn_id: str
    heard: str
    call_id: str
    tenant: str
    agent: str
    spoken: bool = True
    """False: the reply answers no words of the caller. It is a greeting, or answers what a client has typed."""
    number: int = 0
    """Its number in the call, from 0."""
    results: tuple[ToolUse, ...] = ()
    """Results of the client's tools from which it goes on."""


class Stages(msgspec.Struct, frozen=True):
    """The stages of a turn in milliseconds, as in `TurnSummary`; None: did not happen."""

    endpointing: float | None = None
    asr: float | None = None
    llm: float | None = None
    tts: float | None = None
    playout: float | None = None
    hidden: float | None = None
    """The part of the engines' time before the turn was confirmed: the caller did not wait for it."""


class ListedTurn(msgspec.Struct, frozen=True):
    """A turn as it is listed."""

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
    """The reply failed, or the fallback was said instead."""
    cut_in: bool
    """The caller had not finished."""
    speculation: str
    """ "hit", "miss" or ""."""
    discarded: int
    """Drafts that were dropped."""


class FullTurn(msgspec.Struct, frozen=True):
    """One turn in full, with its words and figures, or a reply that answers no turn (`spoken`)."""

    turn: ListedTurn
    heard: str
    answered: str
    """What the caller heard of the reply; a tool that the client is to run as [NAME]."""
    record: TurnSummary
    tools: tuple[ToolUse, ...] = ()
    """Tools of the agent's that ran for it."""
    spoken: bool = True
    """As `AskedTurn.spoken`."""
    number: int = 0
    """Its number in the call, from 0."""
    status: ReplyStatus = "completed"
    """Status of the reply; "cancelled": interrupted, or the caller hung up."""
    input_tokens: int = 0
    output_tokens: int = 0


class TurnWithStages(NamedTuple):
    """A turn with what figures of many turns are made of."""

    turn: ListedTurn
    stages: Stages


class ShownCall(NamedTuple):
    """A call of which turns are kept."""

    id: str
    tenant: str
    caller: str
    """The calling number of a phone call; else empty."""
    began: float
    """Unix seconds at which it was answered."""


class LastTurns:
    """The last `KEPT` turns of a PoP, oldest first.

    They are kept encoded, in 0.6 kB each: as objects they take more than twice as much, and a PoP with few calls would
    grow for most of an hour until all of them are there."""

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self.forgotten_at = 0.0
        """When the newest turn that is no longer kept was confirmed; 0: all are kept."""

    def add(self, full: FullTurn, caller: str = "", began: float = 0.0) -> None:
        """A turn's reply is over. `caller`, `began`: of its call, as in `ShownCall`."""
        self._packed[full.turn.id] = _pack(full, caller, began)
        if len(self._packed) > KEPT:
            oldest = _listed(self._packed.pop(next(iter(self._packed))))
            self.forgotten_at = max(self.forgotten_at, oldest.turn.at)

    def amend(self, full: FullTurn) -> None:
        """Change the words of a turn, if it is still kept."""
        if packed := self._packed.get(full.turn.id):
            call = _call(packed)
            self._packed[full.turn.id] = _pack(full, call.caller, call.began)

    def forget(self, calls: Collection[str], tenant: str | None = None) -> set[str]:
        """Delete the turns of these calls that are `tenant`'s, or anybody's with None. Returns the calls that had
        any."""
        turns = [turn for turn, _ in map(_listed, self._packed.values())]
        gone = [turn for turn in turns if turn.call in calls and tenant in (None, turn.tenant)]
        for turn in gone:
            del self._packed[turn.id]
        return {turn.call for turn in gone}

    def calls(self) -> set[ShownCall]:
        """The calls of which turns are kept."""
        return set(map(_call, self._packed.values()))

    def since(self, when: float, tenant: str | None = None) -> Iterator[TurnWithStages]:
        """Turns confirmed at `when` or later, in the order in which they ended; `tenant`'s, or all with None."""
        turns = map(_listed, self._packed.values())
        return (listed for listed in turns if listed.turn.at >= when and tenant in (None, listed.turn.tenant))

    def late(self, when: float, most: int, tenant: str | None = None) -> list[FullTurn]:
        """The late ones of the turns that `since` gives; the newest `most`, in full."""
        ids = [listed.turn.id for listed in self.since(when, tenant) if listed.turn.late]
        return [_full(self._packed[turn_id]) for turn_id in ids[-most:]]

    def find(self, turn_id: str, tenant: str | None = None) -> FullTurn | None:
        """None: there is none, it is not kept any more, or it is another tenant's."""
        full = _full(packed) if (packed := self._packed.get(turn_id)) else None
        return full if full and tenant in (None, full.turn.tenant) else None


def _pack(full: FullTurn, caller: str, began: float) -> bytes:
    # Without the fields' names, which would be half of it. What only one turn in full needs is read for that alone.
    rest = _encode(
        (full.heard, full.answered, astuple(full.record), tuple(map(astuple, full.tools)), *astuple(full)[5:])
    )
    _encode_into((astuple(full.turn), astuple(stages(full.record)), rest, caller, began), buffer := bytearray())
    return bytes(buffer)  # What `encode` returns holds on to a third more than it says.


def _listed(packed: bytes) -> TurnWithStages:
    turn, took, *_ = _decode(packed)
    return TurnWithStages(ListedTurn(*turn), Stages(*took))


def _call(packed: bytes) -> ShownCall:
    turn, _, _, caller, began = _decode(packed)
    its = ListedTurn(*turn)
    return ShownCall(its.call, its.tenant, caller, began)


def _full(packed: bytes) -> FullTurn:
    turn, _, rest, *_ = _decode(packed)
    heard, answered, record, tools, *others = _decode(rest)
    used = tuple(ToolUse(*use) for use in tools)
    return FullTurn(ListedTurn(*turn), heard, answered, TurnSummary(*record), used, *others)


_encode = msgspec.msgpack.Encoder().encode
_encode_into = msgspec.msgpack.Encoder().encode_into
_decode = msgspec.msgpack.Decoder().decode


def full_turn(asked: AskedTurn, reply: ReplyDone, budget_ms: float) -> FullTurn:
    """A turn whose reply is over, with all its words: `RedactedWords` decides which may be kept. `budget_ms`: a later
    answer is late."""
    record = reply.record
    latency = record.turn_latency
    turn = ListedTurn(
        id=asked.turn_id,
        at=asked.at,
        call=asked.call_id,
        tenant=asked.tenant,
        agent=asked.agent,
        latency_ms=latency,
        by_request=record.by_request,
        late=latency is not None and latency > budget_ms and not record.by_request,
        missed=reply.status == "failed" or record.ladder == "fallback",
        cut_in=record.reopened or _cut_unheard(reply),
        speculation=record.speculation,
        discarded=record.discarded,
    )
    said = [item.text or f"[{item.name}]" for item in reply.items if item.text or item.name]
    return FullTurn(
        turn=turn,
        heard=asked.heard,
        answered=" ".join(said),
        record=record,
        tools=(*asked.results, *reply.tools)[:MOST_TOOLS],
        spoken=asked.spoken,
        number=asked.number,
        status=reply.status,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
    )


def stages(record: TurnSummary) -> Stages:
    """The milliseconds of each stage, and the part of them that was hidden in the silence."""
    engines = (
        (record.at_settle, record.at_words),  # the recogniser
        (record.at_prepare, record.at_phrase),  # the model
        (record.at_phrase, record.at_speech),  # the voice
    )
    spans = [(begin, end) for begin, end in engines if begin is not None and end is not None]
    hidden = None
    if record.at_commit is not None and spans:
        hidden = sum([max(0.0, min(end, record.at_commit) - begin) for begin, end in spans])
    return Stages(record.endpoint, record.asr, record.llm, record.tts, record.playout, hidden)


def _cut_unheard(reply: ReplyDone) -> bool:
    """A reply that is cut before a word of it was heard came while the caller had not finished, flagged or not."""
    cut = reply.status == "cancelled" and reply.reason == "turn_detected"
    return cut and not any(item.text for item in reply.items)
