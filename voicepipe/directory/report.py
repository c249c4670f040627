"""A PoP's report of its state, once a second. The sender is known by the subject of the message, never by its
content."""

from typing import Annotated

import msgspec
from msgspec import Meta

from voicepipe.base.places import Place
from voicepipe.observe.recent_turns import RecentTurns
from voicepipe.observe.tally import Tally

Epoch = int
"""Identifies one run of a PoP: the Unix millisecond at which it began."""
CALLS = "/v1/realtime/calls"


class EditionState(msgspec.Struct, frozen=True):
    """The edition of the fleet's agents, routes and tenants that a PoP uses (`directory/editions/`)."""

    number: Annotated[int, Meta(ge=0, lt=2**53)] = 0
    """0: none yet, but its own files."""
    digest: str = ""
    """The digest of its files."""
    problem: str = ""
    """Why the PoP did not take over a newer one; empty: it did."""
    pinned: bool = False
    """The PoP stays at this edition."""


class Condition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state and the abilities of a PoP at a moment."""

    status: str
    """As /healthz has it: "ok" while calls are taken."""
    slots: Annotated[int, Meta(ge=1)]
    calls: Annotated[int, Meta(ge=0)]
    predicted_ms: float
    """Turn latency, 95th percentile, with one more call."""
    budget_ms: float
    region: str
    zone: str = ""
    """The zone in which its data are by law, such as "eu"; empty: none in particular."""
    place: Place | None = None
    url: str = ""
    """Its address for callers and directories, as "https://fra1.example.com"."""
    kinds: tuple[str, ...] = ()
    """The kinds of calls that it takes there: "websocket", "webrtc", "sip", "twilio", "telnyx"."""
    sip: str = ""
    """Its address for telephones by SIP, as "203.0.113.5:5060"."""
    agents: dict[str, str] = {}
    """The names of its agents, and the language of each."""
    incomplete: tuple[str, ...] = ()
    """Those of its agents whose hook may have another agent answer that cannot answer here; also an empty name if its
    default agent is one."""
    model: str = ""
    """The name of the language model."""
    version: str = ""
    """The operator's label, or voicepipe's own version."""
    share: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """The share that it should have of the calls that it would get otherwise, since its turns failed lately; 0: they
    fail."""
    weight: Annotated[float, Meta(gt=0)] = 1.0
    """Its weight where it shares a crowd of calls with others as near."""
    price_per_hour: float = 0.0
    """In whatever currency its operator counts; 0: unknown. It is shown, and changes no choice."""
    keep_days: Annotated[float, Meta(ge=0)] = 0
    """For how long it keeps records of calls; 0: it keeps none."""
    recent: RecentTurns | None = None
    """None: this PoP's version does not report it."""
    edition: EditionState | None = None
    """None: it takes no editions, and uses its own files."""
    hour: Tally | None = None
    """The tally of the last hour, by which versions are compared. None: this PoP's version does not report it."""

    def call_url(self, kind: str) -> str:
        """The address at which a call of this kind begins."""
        if kind == "sip":
            return f"sip:{self.sip}"
        if kind in ("twilio", "telnyx"):
            return f"{self.url}/{kind}/voice"
        return f"ws{self.url.removeprefix('http')}/v1/realtime" if kind == "websocket" else f"{self.url}{CALLS}"


class PopReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A report of one run of a PoP. It is about 750 bytes of JSON, 40 more for each agent, and up to 1,200 more for the
    tally of a busy hour."""

    epoch: Epoch
    seq: int
    """The number of the report in this run; the first is 0."""
    uptime_s: float
    """Seconds of a clock that is never set, by which reports of one run are ordered."""
    clock_s: float
    """Unix seconds by the PoP's own clock, which may be wrong."""
    condition: Condition
    begun: tuple[str, ...] = ()
    """Ids of assigned calls that began here lately, as `Placement.placement_id`: a directory waits for them no
    longer."""
