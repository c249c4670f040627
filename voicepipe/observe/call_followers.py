"""Followers of calls: metrics, traces, records, the cost of the host."""

import msgspec

from voicepipe.call_api import HookRun
from voicepipe.call_settings import TraceContext
from voicepipe.line import HIDDEN, NetworkQuality
from voicepipe.observe.last_turns import FullTurn


class CallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a call that are known from its answer on."""

    id: str
    tenant: str
    agent: str
    line: str
    """The kind of line: "websocket", "webrtc", ..."""
    since: float
    """Unix seconds at which it was answered."""
    caller: str = ""
    """The calling number of a phone call; else empty."""
    called: str = ""
    """The number that was dialled."""
    variables: dict[str, str] = {}
    """Values of its agent's variables, as they may be kept."""
    trace: TraceContext = TraceContext()
    """The trace context of its caller."""
    trace_id: str = ""
    """The id of its trace, 32 hexadecimal digits; empty: it is not traced."""
    hook: HookRun | None = None
    """How the hook of the agent that was called has answered; None: it has none."""


class CallEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended."""

    reason: str
    """The reason of its ingress: `CallEnded.reason`, or "max_length", "not_begun"."""
    at: float
    """Unix seconds."""
    network: NetworkQuality = HIDDEN
    """Quality of the network during the call."""
    transferred_to: str = ""
    """The party to whom the caller was transferred."""
    handed_to: tuple[str, ...] = ()
    """The agents that took the call over, in order."""


class CallFollower:
    """Follows all calls as they go on; subclasses override the methods for what they need."""

    def began(self, call: CallFacts) -> None:
        """A call was answered."""

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        """The reply of a turn is over."""

    def replied(self, call: CallFacts, full: FullTurn) -> None:
        """A reply outside of turns is over: a greeting, the answer to a typed message; or words came that nobody
        answered."""

    def amended(self, call: CallFacts, full: FullTurn) -> None:
        """A turn or reply that was reported before, with the same `number`, has other words now."""

    def cut_in(self, call: CallFacts, full: FullTurn) -> None:
        """This turn's reply came before its caller had finished, as it turned out; the turn was reported without
        that."""

    def handed_over(self, call: CallFacts, to: str) -> None:
        """Another agent has taken the call over."""

    def barged_in(self, call: CallFacts) -> None:
        """A caller interrupted a reply that they had heard some of."""

    def ended(self, call: CallFacts, end: CallEnd) -> None:
        """A call has ended. Only `left` follows."""

    def left(self, call: CallFacts) -> None:
        """A call is no longer in progress, however it ended."""


class CallTracer(CallFollower):
    """Traces the calls of a PoP. This base class makes no traces."""

    @property
    def dropped(self) -> int:
        """Spans that were dropped before they reached the collector."""
        return 0

    def begin(self, call: CallFacts) -> str:
        """A call was answered, before its other followers are notified. Returns the id of its trace, as in
        `CallFacts.trace_id`."""
        return ""


UNTRACED = CallTracer()
