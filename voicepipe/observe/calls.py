"""Calls in progress, and the turns that come of their events. Pure: times are passed in."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce

import msgspec
from msgspec.structs import replace

from voicepipe.base.words import joined
from voicepipe.call_api import HookRun
from voicepipe.call_settings import NOWHERE, Origin
from voicepipe.config.pop_config import LONGEST, USUAL, RedactionConfig
from voicepipe.conversation.events import (
    TOOL_CHARS,
    TOOL_NAME_CHARS,
    AgentChanged,
    CallEnded,
    CallEvent,
    Item,
    ItemAdded,
    ReplyDone,
    ReplyStarted,
    ToolUse,
)
from voicepipe.line import HIDDEN, Line, NetworkQuality
from voicepipe.observe.call_followers import UNTRACED, CallEnd, CallFacts, CallFollower, CallTracer
from voicepipe.observe.last_turns import AskedTurn, FullTurn, LastTurns, full_turn
from voicepipe.observe.redacted_words import RedactedWords, redacted


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """A call in progress as it is listed."""

    id: str
    tenant: str
    agent: str
    line: str
    """The kind of line: "websocket", "webrtc", ..."""
    caller: str
    """The calling number of a phone call; else empty."""
    since: float
    """Unix seconds at which it was answered."""
    turns: int
    latency_ms: float | None
    """Latency of the last turn."""
    network: str | None = None
    """Quality of the network to the caller, in a few words; None: the line does not know it."""


class LiveCall:
    """A call from its admission on, which makes turns of its events and reports them to the followers."""

    def __init__(
        self, turns: LastTurns, budget_ms: float, tenant: str, agent: str, followers: Sequence[CallFollower] = (),
        redaction: RedactionConfig = USUAL, traces: CallTracer = UNTRACED,
    ) -> None:  # fmt: skip
        self.tenant = tenant
        self.facts: CallFacts | None = None
        """None until it is answered."""
        self.hook: HookRun | None = None
        """How the hook of the agent that was called has answered."""
        self._turns = turns
        self._traces = traces
        self._followers = (traces, *followers)
        self._budget_ms = budget_ms
        self._agent = agent
        self._redaction = redaction
        self._kept = RedactedWords(redaction)
        self._line: Line | None = None
        self._turn_count = 0
        self._reported = 0
        """Number of turns and other replies so far."""
        self._last: FullTurn | None = None
        """The last turn."""
        self._transferred_to = ""
        self._handed_to: list[str] = []
        self._unanswered = Unanswered()
        self._asked: dict[str, AskedTurn] = {}
        """Turns by the reply that is being made."""

    def answered(
        self,
        call_id: str,
        line: Line,
        now: float,
        origin: Origin = NOWHERE,
        variables: Mapping[str, str] | None = None,
        agent: str = "",
    ) -> None:
        """The call was answered, by `agent` if it is another one than was called: it has a line now. `variables`: those
        that records may hold."""
        self._line, self._agent = line, agent or self._agent
        facts = CallFacts(id=call_id, tenant=self.tenant, agent=self._agent, line=line.kind, since=now,
                          caller=origin.caller, called=origin.called, trace=origin.trace, hook=self.hook,
                          variables=redacted(self._redaction, variables or {}))  # fmt: skip
        self.facts = replace(facts, trace_id=self._traces.begin(facts))
        for follower in self._followers:
            follower.began(self.facts)

    def left(self) -> None:
        """The call's slot is free again."""
        for follower in self._followers if self.facts else ():
            follower.left(self._known)

    def note(self, event: CallEvent, now: float) -> None:
        """Process an event of the call."""
        match event:
            case ItemAdded():
                self._unanswered.add(event)
            case ReplyStarted(remembered=True):
                self._asked[event.response_id] = self._ask(event.turn_id, now)
            case ReplyDone() if asked := self._asked.pop(event.response_id, None):
                self._unanswered.called(event.items)
                self._add(asked, event)
            case AgentChanged():
                self._agent = event.settings.agent.name
                self._handed_to.append(self._agent)
                for follower in self._followers:
                    follower.handed_over(self._known, self._agent)
            case CallEnded():
                self._close_replies(event, now)

    def ended(self, reason: str, now: float) -> None:
        """The call has ended, for this reason of its ingress."""
        self._amend(self._kept.close())
        to = self._transferred_to if reason == "transferred" else ""
        end = CallEnd(reason=reason, at=max(now, self._known.since), network=self.network(), transferred_to=to,
                      handed_to=tuple(self._handed_to))  # fmt: skip
        for follower in self._followers:
            follower.ended(self._known, end)

    def _close_replies(self, event: CallEnded, now: float) -> None:
        """End the reply in progress: it was cut off, or missed where the call failed. Followers hear of the call's end
        by `ended`, from its door, whose reason counts."""
        self._transferred_to = event.detail if event.reason == "transferred" else ""
        for response_id, asked in self._asked.items():
            if event.reason == "error":
                self._add(asked, ReplyDone(response_id, "failed", event.detail))
            else:
                self._add_untimed(asked, ReplyDone(response_id, "cancelled"))
        self._asked.clear()
        if self._unanswered:
            self._add_untimed(self._ask("", now), ReplyDone("", "cancelled"))

    def _ask(self, turn_id: str, now: float) -> AskedTurn:
        heard, spoken, results = self._unanswered.take()
        number, self._reported = self._reported, self._reported + 1
        return AskedTurn(now, turn_id, heard, self._known.id, self.tenant, self._agent, spoken, number, results)

    def _add(self, asked: AskedTurn, reply: ReplyDone) -> None:
        if not asked.spoken:
            return self._add_untimed(asked, reply)
        if self._last and reply.record.continues:
            self._was_cut_in(self._last)
        full, earlier = self._kept.of(full_turn(asked, reply, self._budget_ms))
        self._turns.add(full, self._known.caller, self._known.since)
        interrupted = reply.status == "cancelled" and reply.reason == "turn_detected" and not full.turn.cut_in
        for follower in self._followers:
            follower.turn(self._known, full)
            if interrupted:
                follower.barged_in(self._known)
        self._last = full
        self._turn_count += 1
        self._amend(earlier)

    def _add_untimed(self, asked: AskedTurn, reply: ReplyDone) -> None:
        """Add a reply that is part of the conversation, but no turn in the figures."""
        full, earlier = self._kept.of(full_turn(asked, reply, self._budget_ms))
        for follower in self._followers if reply.items or asked.heard or asked.results or reply.tools else ():
            follower.replied(self._known, full)
        self._amend(earlier)

    def _was_cut_in(self, last: FullTurn) -> None:
        if last.turn.cut_in:
            return
        full = self._kept.cut_in(last)
        self._amend([full])
        for follower in self._followers:
            follower.cut_in(self._known, full)

    def _amend(self, changed: Iterable[FullTurn]) -> None:
        """Report that the words of an earlier turn or reply are others now."""
        for full in changed:
            if self._last and full.number == self._last.number:
                self._last = full
            self._turns.amend(full)
            for follower in self._followers:
                follower.amended(self._known, full)

    @property
    def _known(self) -> CallFacts:
        assert self.facts is not None
        return self.facts

    def network(self) -> NetworkQuality:
        """Quality of the network at present."""
        return self._line.network() if self._line else HIDDEN

    def row(self) -> CallRow:
        """The call as it is listed now."""
        latency_ms = self._last.turn.latency_ms if self._last else None
        known = self._known
        return CallRow(id=known.id, tenant=self.tenant, agent=self._agent, line=known.line, caller=known.caller,
                       since=known.since, turns=self._turn_count, latency_ms=latency_ms,
                       network=_said(self.network()))  # fmt: skip


class LiveCalls:
    """All calls in progress. `make` makes one of a tenant's, for an agent."""

    def __init__(self, make: Callable[[str, str], LiveCall]) -> None:
        self._make = make
        self._calls: dict[int, LiveCall] = {}

    @contextmanager
    def watched(self, tenant: str, agent: str) -> Iterator[LiveCall]:
        """Yields a call that was admitted; it is listed from its answer until the context ends, however it ends."""
        call = self._make(tenant, agent)
        self._calls[id(call)] = call
        try:
            yield call
        finally:
            del self._calls[id(call)]
            call.left()

    def rows(self, tenant: str | None = None) -> list[CallRow]:
        """The calls of `tenant`, or of all with None; those that last longest first."""
        return [call.row() for call in self._calls.values() if call.facts and tenant in (None, call.tenant)]

    def networks(self, tenant: str | None = None) -> list[NetworkQuality]:
        """Quality of the networks to the callers of `tenant`, or of all with None."""
        return [call.network() for call in self._calls.values() if call.facts and tenant in (None, call.tenant)]


def _said(network: NetworkQuality) -> str | None:
    """The figures that are known."""
    words = (
        ("{:.1f}% lost", network.loss_percent),
        ("{:.0f} ms jitter", network.jitter_ms),
        ("{:.0f} ms there and back", network.rtt_ms),
    )
    return ", ".join(text.format(figure) for text, figure in words if figure is not None) or None


class Unanswered:
    """Items that came since the last reply was begun. Bounded, since a client can add and delete items for ever."""

    def __init__(self) -> None:
        self._spoken: list[str] = []
        self._typed: list[str] = []
        self._typed_chars = 0
        self._results: list[ToolUse] = []
        self._called: dict[str, Item] = {}
        """The client's tools whose results are awaited, by their call ids."""

    def __bool__(self) -> bool:
        return bool(self._spoken or self._typed or self._results)

    def add(self, event: ItemAdded) -> None:
        """An item joined the conversation."""
        item = event.item
        if event.spoken:
            self._spoken.append(item.text)
        elif item.kind == "message" and item.role == "user" and self._typed_chars < LONGEST:
            self._typed.append(item.text)
            self._typed_chars += len(item.text) + 1
        elif item.kind == "function_call_output" and (called := self._called.pop(item.call_id, None)):
            arguments, result = called.arguments[:TOOL_CHARS], item.output[:TOOL_CHARS]
            self._results.append(ToolUse(called.name[:TOOL_NAME_CHARS], arguments=arguments, result=result))

    def called(self, items: Iterable[Item]) -> None:
        """The tools that a reply has called, whose results are awaited; those of replies before are not any more."""
        if called := {item.call_id: item for item in items if item.kind == "function_call"}:
            self._called = called

    def take(self) -> tuple[str, bool, tuple[ToolUse, ...]]:
        """Take what came: the words, whether some were spoken, and results of the client's tools."""
        words = reduce(joined, [*self._spoken, *self._typed], "")
        taken = words, bool(self._spoken), tuple(self._results)
        self._spoken, self._typed, self._results, self._typed_chars = [], [], [], 0
        return taken
