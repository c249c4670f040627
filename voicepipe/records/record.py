"""What is kept of one call. Pure."""

from collections.abc import Sequence

import msgspec

from voicepipe.call_api import HookRun
from voicepipe.line import NetworkQuality
from voicepipe.observe.call_followers import CallEnd, CallFacts
from voicepipe.observe.last_turns import FullTurn
from voicepipe.observe.turn_figures import percentile_ms
from voicepipe.operator_views import KeptCall
from voicepipe.sizing.price import call_cost

CUT = "cut"
"""The reason of a call whose PoP ended first: it was killed, or its host was."""


class RecordedHost(msgspec.Struct, frozen=True):
    """The PoP that had the call."""

    pop: str
    region: str
    slots: int = 1
    price_per_hour: float = 0.0
    """0: unknown."""

    def cost(self, seconds: float) -> float | None:
        """The cost of a call that lasted so long; None: no price is known."""
        return call_cost(self.price_per_hour, self.slots, seconds) if self.price_per_hour else None


class CallSummary(KeptCall, frozen=True, kw_only=True):
    """A call as it is listed. Times are Unix seconds."""

    pop: str
    region: str
    tenant: str
    agent: str
    line: str
    """Kind of line: "websocket", "webrtc", "sip", "twilio", "telnyx"."""
    caller: str = ""
    """The calling number of a phone call."""
    called: str = ""
    """The number that was dialled."""
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
    cost: float | None = None
    """Its share of the host's price while it lasted, in the operator's currency (`sizing/price.py`); None: it goes on,
    or no price is known."""
    network: NetworkQuality | None = None
    transferred_to: str = ""
    """The party to whom the caller was transferred; empty: none."""
    handed_to: tuple[str, ...] = ()
    """The agents that took the call over from `agent`, in order."""
    trace: str = ""
    """The id of its trace (W3C), 32 hexadecimal digits; empty: it is not traced."""
    hook: HookRun | None = None
    """How the `hooks.before_call` or `hooks.incoming_call` of the agent that was called has answered; None: it has
    neither."""
    variables: dict[str, str] = {}
    """Values of its agent's variables, without those that stand in headers."""


class CallRecord(CallSummary, frozen=True, kw_only=True):
    """The whole record of a call: its summary, and what was said."""

    said: tuple[msgspec.Raw, ...]
    """The turns in order, each a `FullTurn`; also a greeting, and the answer to a typed message."""


def summary(
    call: CallFacts, host: RecordedHost, said: Sequence[FullTurn] = (), end: CallEnd | None = None
) -> CallSummary:
    """The summary of a call, by its turns. `end`: None while it goes on."""
    turns = [full.turn for full in said if full.spoken]
    latencies = sorted([turn.latency_ms for turn in turns if turn.latency_ms is not None])
    return CallSummary(
        id=call.id, pop=host.pop, region=host.region, tenant=call.tenant, agent=call.agent, line=call.line,
        caller=call.caller, called=call.called, began=call.since,
        ended=end.at if end else None, reason=end.reason if end else "",
        turns=len(turns),
        late=sum(turn.late for turn in turns),
        missed=sum(turn.missed for turn in turns),
        cut_ins=sum(turn.cut_in for turn in turns),
        p50_ms=percentile_ms(latencies, 50),
        p95_ms=percentile_ms(latencies, 95),
        input_tokens=sum(full.input_tokens for full in said),
        output_tokens=sum(full.output_tokens for full in said),
        cost=host.cost(end.at - call.since) if end else None,
        network=end.network if end else None,
        transferred_to=end.transferred_to if end else "",
        handed_to=end.handed_to if end else (),
        trace=call.trace_id,
        hook=call.hook,
        variables=call.variables,
    )  # fmt: skip
