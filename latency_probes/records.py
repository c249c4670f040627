"""What the probes keep of a call, and what they make of it."""

from dataclasses import dataclass, field

import msgspec

from latency_probes.clips import Speech
from latency_probes.guests import Visit
from latency_probes.plan import CallPlan, Turn
from latency_probes.timeline import Timeline
from voicepipe.base.errors import ProbeError

MISSED_S = 4.0
"""An answer that takes longer is no answer."""


@dataclass(frozen=True, slots=True)
class Said:
    """One turn as it took place. Positions are samples in what was sent."""

    turn: Turn
    speech: Speech
    start: int
    until: float
    """Second at which the caller had heard enough and went on."""
    over_start: int = 0
    """0 where nothing came over the reply, or where no reply became audible in time."""
    over: Speech | None = None


@dataclass(slots=True)
class CallRecord:
    """One call: what was said, what came back, and why it ended early if it did."""

    plan: CallPlan
    timeline: Timeline
    said: list[Said] = field(default_factory=list)
    error: ProbeError | None = None
    """Why it could not be placed, or ended early."""
    lag_s: float = 0.0
    visit: Visit | None = None
    """Of a guest's call."""

    @property
    def failure(self) -> str:
        """The error in a sentence; empty: there was none."""
        return str(self.error) if self.error else ""


class TurnResult(msgspec.Struct):
    """One turn, judged. Times are milliseconds; None where there was nothing to measure."""

    id: str
    kind: str
    voice: str
    noise: str
    text: str
    heard: str
    """The caller's words as the server transcribed them."""
    reply: str
    outcome: str
    """"right", "wrong", "fallback" (asked again), "acknowledged" (and nothing more) or "none"."""
    gap_ms: float | None = None
    """Last voiced sample sent, to first audible sample of the answer received."""
    played_ms: float | None = None
    """The same, to the moment at which a client without a buffer plays that sample."""
    cut_in: bool = False
    """A reply became audible before the caller's last voiced sample was sent."""
    silenced: bool | None = None
    """After a cut-in: the reply fell silent within 250 ms of the caller's going on."""
    repaired: bool | None = None
    """It did, and both halves were understood."""
    word_errors: float | None = None
    place: str = ""
    pause_ms: float | None = None
    over: "OverResult | None" = None
    status: str = ""
    """Of the response that answered, as the server ended it: "completed", "cancelled", "failed", ..."""
    stages: dict[str, float] = {}
    """Numbers of the server's own record of the turn."""
    flags: dict[str, bool] = {}
    labels: dict[str, str] = {}
    pop: str = ""
    """Where a directory has sent the call; empty: none was asked."""


class CallResult(msgspec.Struct):
    """One call that a directory has sent somewhere. Times are milliseconds from asking it; None: it never came."""

    number: int
    """As in the plan."""
    pop: str
    turn_ms_est: float
    degraded: bool
    asked: int
    tries: int
    created_ms: float | None
    """To `session.created`."""
    greeting_ms: float | None
    """To the greeting's first sound."""


class OverResult(msgspec.Struct):
    """What became of a reply that something came over. Milliseconds from the first sample of that something."""

    cut: bool
    """The reply ended early, or stock clients were told to throw it away."""
    answered: bool
    """The server replied to what came over the reply."""
    compared: bool
    """There was the same reply, undisturbed, to compare with."""
    ducked_ms: float | None = None
    """Until the first sample arrived that is 10 dB below the undisturbed reply."""
    silent_ms: float | None = None
    """Until the last audible sample arrived, if the reply was cut."""
    decided_ms: float | None = None
    """Until the server said that it cut."""
