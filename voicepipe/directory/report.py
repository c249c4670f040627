"""What a PoP says of itself, once a second. Whose report it is says the subject that it came by, never its content."""

from typing import Annotated

import msgspec
from msgspec import Meta

from voicepipe.base.places import Place
from voicepipe.observe.recent_turns import RecentTurns
from voicepipe.observe.tally import Tally

Epoch = int
"""Of one run of a PoP: the Unix millisecond at which it began."""
CALLS = "/v1/realtime/calls"


class EditionState(msgspec.Struct, frozen=True):
    """Which edition of the fleet's agents, routes and tenants a PoP goes by (`directory/editions/`)."""

    number: Annotated[int, Meta(ge=0, lt=2**53)] = 0
    """0: none yet, but its own files."""
    digest: str = ""
    """Of its files."""
    problem: str = ""
    """What kept the PoP from taking over a newer one; empty: nothing did."""
    pinned: bool = False
    """It stays at this one."""


class Condition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a PoP is at a moment, and what it can do."""

    status: str
    """As /healthz has it: "ok" while calls are taken."""
    slots: Annotated[int, Meta(ge=1)]
    calls: Annotated[int, Meta(ge=0)]
    predicted_ms: float
    """Turn latency, 95th percentile, with one more call."""
    budget_ms: float
    region: str
    zone: str = ""
    """Where the law says that its data are, such as "eu"; empty: nowhere in particular."""
    place: Place | None = None
    url: str = ""
    """Where callers and directories reach it, as "https://fra1.example.com"."""
    kinds: tuple[str, ...] = ()
    """Of calls that it takes there: "websocket", "webrtc", "sip", "twilio", "telnyx"."""
    sip: str = ""
    """Where telephones call it by SIP, as "203.0.113.5:5060"."""
    agents: dict[str, str] = {}
    """Names of those that answer here, and the language of each."""
    model: str = ""
    """The language model, by its name."""
    version: str = ""
    """The operator's label, or voicepipe's own version."""
    share: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """Of the calls that it would get otherwise, since its turns failed lately; 0: they fail."""
    weight: Annotated[float, Meta(gt=0)] = 1.0
    """How much of a crowd it is to have, beside others as near."""
    price_per_hour: float = 0.0
    """In whatever currency its operator counts; 0: nobody knows. It is shown, and changes no choice."""
    recent: RecentTurns | None = None
    """None: this PoP's version does not tell."""
    edition: EditionState | None = None
    """None: it takes none, and keeps to its own files."""
    hour: Tally | None = None
    """Alike. By it versions are compared."""

    def call_url(self, kind: str) -> str:
        """Where a call of this kind begins."""
        if kind == "sip":
            return f"sip:{self.sip}"
        if kind in ("twilio", "telnyx"):
            return f"{self.url}/{kind}/voice"
        return f"ws{self.url.removeprefix('http')}/v1/realtime" if kind == "websocket" else f"{self.url}{CALLS}"


class PopReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One moment of one run of a PoP. It is about 750 bytes of JSON, 40 more for each agent, and up to
    1,200 more for the tally of a busy hour."""

    epoch: Epoch
    seq: int
    """Of this run's reports; the first is 0."""
    uptime_s: float
    """Seconds of a clock that is never set, by which reports of one run are told early from late."""
    clock_s: float
    """Unix seconds by the PoP's own clock, which may be wrong."""
    condition: Condition
    begun: tuple[str, ...] = ()
    """Assigned calls that began here lately, by their ids: a directory waits for them no longer."""


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(PopReport)


def encoded(report: PopReport) -> bytes:
    """As it travels."""
    return _ENCODER.encode(report)


def decoded(data: bytes) -> PopReport:
    """Raises msgspec.DecodeError: it is no report."""
    return _DECODER.decode(data)
