"""Who is told of calls as they go on: metrics, traces, records, what the host costs."""

import msgspec

from voicepipe.agent import TraceContext
from voicepipe.line import HIDDEN, NetworkQuality
from voicepipe.observe.turns import FullTurn


class CallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a call from its answer on."""

    id: str
    tenant: str
    agent: str
    line: str
    """Kind of line: "websocket", "webrtc", ..."""
    since: float
    """Unix seconds at which it was answered."""
    caller: str = ""
    """The calling number of a phone call; else empty."""
    called: str = ""
    """What was dialled."""
    trace: TraceContext = TraceContext()
    """In which its caller wants it."""
    trace_id: str = ""
    """Of the trace that is made of it, 32 hexadecimal digits; empty: none is."""


class CallEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended."""

    reason: str
    """As its door says: `CallEnded.reason`, or "max_length", "not_begun"."""
    at: float
    """Unix seconds."""
    network: NetworkQuality = HIDDEN
    """How it fared."""
    transferred_to: str = ""
    """Whom the caller was put through to."""


class CallFollower:
    """Who is told of all calls as they go on; subclasses hear what they override."""

    def began(self, call: CallFacts) -> None:
        """It was answered."""

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        """A turn's reply is over."""

    def replied(self, call: CallFacts, full: FullTurn) -> None:
        """What was said outside of turns: a greeting, the answer to a typed message; words that nobody answered."""

    def amended(self, call: CallFacts, full: FullTurn) -> None:
        """What was told before, with the same `number`, reads differently now."""

    def cut_in(self, call: CallFacts, full: FullTurn) -> None:
        """It turned out that this turn's reply came before its caller had finished; it was told without that."""

    def barged_in(self, call: CallFacts) -> None:
        """A caller interrupted a reply that they had heard something of."""

    def ended(self, call: CallFacts, end: CallEnd) -> None:
        """Nothing more is told of it but that it `left`."""

    def left(self, call: CallFacts) -> None:
        """It is in progress no more, however it ended."""


class CallTracer(CallFollower):
    """Of one PoP. These are made of no call."""

    @property
    def dropped(self) -> int:
        """Spans that never reached the collector."""
        return 0

    def begin(self, call: CallFacts) -> str:
        """A call was answered, and its other followers are still to be told. Returns the id of its trace, as
        `CallFacts.trace_id`."""
        return ""


UNTRACED = CallTracer()
