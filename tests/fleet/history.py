"""What callers, the rig and its observers write down. All times are monotonic seconds of this machine, which its
processes share."""

from msgspec import Struct, field


class Candidate(Struct, frozen=True):
    """A place where a directory sends a caller."""

    pop: str
    url: str


class Try(Struct):
    """A caller calls one candidate."""

    pop: str
    began: float
    ended: float = 0.0
    status: int = 0
    """What the PoP answered: 101, it lets them in; 0, nothing."""
    why: str = ""


class Placement(Struct):
    """A caller asks a directory where to call, and tries what it answers."""

    directory: str
    asked: float
    answered: float = 0.0
    status: int = 0
    """0: no answer."""
    code: str = ""
    """Of a refusal."""
    retry_after: str = ""
    candidates: list[Candidate] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    """PoPs that the caller named as tried."""
    tries: list[Try] = field(default_factory=list)


class Call(Struct):
    """One set-up of a call, from the first question to its end."""

    number: int
    region: str
    """Of the caller."""
    zone: str = ""
    """Which the call may not leave; empty: it may go anywhere."""
    placements: list[Placement] = field(default_factory=list)
    pop: str = ""
    """That answered; empty: one that a directory relays the call to."""
    began: float = 0.0
    """Its first event came; 0: it never did."""
    ended: float = 0.0
    end: str = ""
    """"hung up" by the caller, "lost" in its middle, "silent" (no events came), "refused" with a time to come again, or
    what else kept it from beginning."""
    events: int = 0
    bound: bool = False
    """Once a PoP had taken it, no other could."""

    @property
    def bounced(self) -> int:
        """So many candidates turned it away, or did not answer."""
        return sum(one.status != LET_IN for placement in self.placements for one in placement.tries)


LET_IN = 101
HUNG_UP, LOST, SILENT, REFUSED = "hung up", "lost", "silent", "refused"


class Happened(Struct, frozen=True):
    """What the rig did."""

    at: float
    what: str
    """Of a process: "started", "killed", "paused", "resumed", "drained" (told to drain); of a region: "cut",
    "healed"."""
    whom: str


class Health(Struct, frozen=True):
    """What a PoP says of itself."""

    at: float
    pop: str
    status: str
    calls: int


class Views(Struct, frozen=True):
    """What all directories know, asked at one time."""

    at: float
    of: dict[str, dict[str, str]]
    """By directory: the PoPs, and how each is: "takes" calls, "draining", "silent" and so on."""
    should: dict[str, str]
    """What is: how each PoP that runs is, by its name."""


class Pop(Struct, frozen=True):
    """As the rig made it."""

    url: str
    """Where WebSockets are opened."""
    region: str
    zone: str
    slots: int
    drain_s: float = 3660.0
    phone: str = ""
    """Where telephones call it, as "127.0.0.1:5060"."""


class History(Struct):
    """Of one scenario."""

    pops: dict[str, Pop]
    regions: dict[str, str] = field(default_factory=dict)
    """Of directories."""
    calls: list[Call] = field(default_factory=list)
    placed: int = 0
    """So many calls were begun to be placed."""
    happened: list[Happened] = field(default_factory=list)
    health: list[Health] = field(default_factory=list)
    views: list[Views] = field(default_factory=list)
    """Taken when they have to be right."""
