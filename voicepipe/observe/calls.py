"""Calls in progress, and the turns that come of what they tell. Pure: times are given by who calls."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import msgspec

from voicepipe.line import Line
from voicepipe.line_quality import HIDDEN, Network
from voicepipe.observe.turns import AskedTurn, FullTurn, ListedTurn, Turns, full_turn
from voicepipe.turn.events import CallEnded, CallEvent, ItemAdded, ReplyDone, ReplyStarted


class CallFollower(Protocol):
    """Who is told of all calls as they go on. `kind` is that of a call's line."""

    def began(self, kind: str) -> None:
        """It was answered."""

    def turn(self, kind: str, full: FullTurn) -> None:
        """A turn's reply is over."""

    def cut_in(self, kind: str) -> None:
        """It turned out that a reply came before its caller had finished; its turn was told without that."""

    def barged_in(self, kind: str) -> None:
        """A caller interrupted a reply that they had heard something of."""

    def ended(self, kind: str, reason: str, network: Network) -> None:
        """Why, and how its network fared."""

    def left(self, kind: str) -> None:
        """It is in progress no more, however it ended."""


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """A call in progress as it is listed."""

    id: str
    tenant: str
    agent: str
    line: str
    """Kind of line: "websocket", "webrtc", ..."""
    caller: str
    """The calling number of a phone call; else empty."""
    since: float
    """Unix seconds at which it was answered."""
    turns: int
    latency_ms: float | None
    """Of the last turn."""
    network: str | None = None
    """How the network to the caller fares, in a few words; None: the line does not know."""


class LiveCall:
    """One call, from its admission on."""

    def __init__(
        self, turns: Turns, budget_ms: float, tenant: str, agent: str, followers: Sequence[CallFollower] = ()
    ) -> None:
        self.tenant = tenant
        self.id = ""
        """Empty until it is answered."""
        self._turns = turns
        self._followers = followers
        self._budget_ms = budget_ms
        self._agent = agent
        self._line: Line | None = None
        self._kind = ""
        """Of the line."""
        self._caller = ""
        self._since = 0.0
        self._count = 0
        self._last: ListedTurn | None = None
        self._unanswered: list[str] = []
        """What the caller said and no reply was begun for."""
        self._asked: dict[str, AskedTurn] = {}
        """By the reply that is being made."""

    def answered(self, call_id: str, line: Line, now: float, caller: str = "") -> None:
        """It has a line now."""
        self.id, self._line, self._since, self._caller = call_id, line, now, caller
        self._kind = line.kind
        for follower in self._followers:
            follower.began(self._kind)

    def left(self) -> None:
        """Its place is given back."""
        for follower in self._followers if self.id else ():
            follower.left(self._kind)

    def note(self, event: CallEvent, now: float) -> None:
        """The call tells how it is going."""
        match event:
            case ItemAdded(item=item, spoken=True):
                self._unanswered.append(item.text)
            case ReplyStarted(remembered=True) if self._unanswered:
                heard = " ".join(self._unanswered)
                self._unanswered = []
                self._asked[event.response_id] = AskedTurn(now, event.turn_id, heard, self.id, self.tenant, self._agent)
            case ReplyDone() if asked := self._asked.pop(event.response_id, None):
                self._add(asked, event)
            case CallEnded(reason="error"):
                for response_id, asked in self._asked.items():
                    self._add(asked, ReplyDone(response_id, "failed", event.detail))

    def ended(self, reason: str) -> None:
        """Why, as its door says."""
        network = self._line.network() if self._line else HIDDEN
        for follower in self._followers:
            follower.ended(self._kind, reason, network)

    def _add(self, asked: AskedTurn, reply: ReplyDone) -> None:
        if self._last and reply.record.continues:
            self._turns.cut_in(self._last.id)
            for follower in self._followers if not self._last.cut_in else ():
                follower.cut_in(self._kind)
        full = full_turn(asked, reply, self._budget_ms)
        self._turns.add(full)
        interrupted = reply.status == "cancelled" and reply.reason == "turn_detected" and not full.turn.cut_in
        for follower in self._followers:
            follower.turn(self._kind, full)
            if interrupted:
                follower.barged_in(self._kind)
        self._last = full.turn
        self._count += 1

    def row(self) -> CallRow:
        """As it is now."""
        assert self._line is not None
        latency_ms = self._last.latency_ms if self._last else None
        return CallRow(id=self.id, tenant=self.tenant, agent=self._agent, line=self._line.kind, caller=self._caller,
                       since=self._since, turns=self._count, latency_ms=latency_ms,
                       network=_said(self._line.network()))  # fmt: skip


class LiveCalls:
    """All calls in progress."""

    def __init__(self, turns: Turns, budget_ms: float, followers: Sequence[CallFollower] = ()) -> None:
        self._turns = turns
        self._budget_ms = budget_ms
        self._followers = followers
        self._calls: dict[int, LiveCall] = {}

    @contextmanager
    def watched(self, tenant: str, agent: str) -> Iterator[LiveCall]:
        """A call that was admitted; it is listed from its answer until this context ends, however it ends."""
        call = LiveCall(self._turns, self._budget_ms, tenant, agent, self._followers)
        self._calls[id(call)] = call
        try:
            yield call
        finally:
            del self._calls[id(call)]
            call.left()

    def rows(self, tenant: str | None = None) -> list[CallRow]:
        """`tenant`'s calls, None: everyone's; those that last longest first."""
        return [call.row() for call in self._calls.values() if call.id and tenant in (None, call.tenant)]


def _said(network: Network) -> str | None:
    """The figures that are known."""
    words = (
        ("{:.1f}% lost", network.loss_percent),
        ("{:.0f} ms jitter", network.jitter_ms),
        ("{:.0f} ms there and back", network.rtt_ms),
    )
    return ", ".join(text.format(figure) for text, figure in words if figure is not None) or None
