"""What is kept of one call. Pure."""

from collections.abc import Sequence

import msgspec

from voicepipe.line_quality import Network
from voicepipe.observe.calls import CallFacts
from voicepipe.observe.figures import percentile
from voicepipe.observe.turns import FullTurn

CUT = "cut"
"""Why a call ended whose PoP ended first: killed, or its host was."""


class Host(msgspec.Struct, frozen=True):
    """The PoP that had the call."""

    pop: str
    region: str


class CallSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call as it is listed. Times are Unix seconds."""

    id: str
    pop: str
    region: str
    tenant: str
    agent: str
    line: str
    """Kind of line: "websocket", "webrtc", "sip", "twilio", "telnyx"."""
    caller: str = ""
    """The calling number of a phone call."""
    called: str = ""
    """What was dialled."""
    began: float
    """When it was answered."""
    ended: float | None = None
    """None: it goes on. Of a call that was cut: when the last thing of it was written."""
    reason: str = ""
    """Why it ended, as `CallEnded.reason`, or "cut"; empty: it goes on."""
    turns: int = 0
    late: int = 0
    missed: int = 0
    cut_ins: int = 0
    p50_ms: float | None = None
    """Turn latency."""
    p95_ms: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    network: Network | None = None


class CallRecord(CallSummary, frozen=True, kw_only=True, omit_defaults=True):
    """One call in full."""

    said: tuple[msgspec.Raw, ...]
    """In order, each a `FullTurn`: a turn, a greeting, the answer to a typed message."""


def summary(
    call: CallFacts, host: Host, said: Sequence[FullTurn] = (), *, ended: float | None = None, reason: str = "",
    network: Network | None = None,
) -> CallSummary:  # fmt: skip
    """What a call comes to, by what was said in it."""
    turns = [full.turn for full in said if full.spoken]
    latencies = sorted([turn.latency_ms for turn in turns if turn.latency_ms is not None])
    return CallSummary(
        id=call.id, pop=host.pop, region=host.region, tenant=call.tenant, agent=call.agent, line=call.line,
        caller=call.caller, called=call.called, began=call.since, ended=ended, reason=reason,
        turns=len(turns),
        late=sum(turn.late for turn in turns),
        missed=sum(turn.missed for turn in turns),
        cut_ins=sum(turn.cut_in for turn in turns),
        p50_ms=percentile(latencies, 50),
        p95_ms=percentile(latencies, 95),
        input_tokens=sum(full.input_tokens for full in said),
        output_tokens=sum(full.output_tokens for full in said),
        network=network,
    )  # fmt: skip
