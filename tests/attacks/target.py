"""What an attack is aimed at, and what it has to be: bounded in time, and at this machine alone."""

import ipaddress
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Target:
    """A PoP on a loopback address. Raises ValueError for any other: attacks are never aimed elsewhere."""

    host: str
    port: int
    key: str = ""
    """Of a tenant that is not the well-behaved callers'; empty: the PoP asks for none."""
    sip_port: int = 0
    """0: no phones."""
    pid: int = 0
    """Of the PoP's process, for attacks that look at what they do to it; 0: unknown."""
    spared: frozenset[int] = frozenset()
    """UDP ports of that process which are not the PoP's: those of a test's own callers."""
    told: Counter[str] = field(default_factory=Counter, compare=False)
    """What the PoP says to the attacker, and how often: statuses, error messages, reasons of closing. An attack that
    adds to it (`target.told["HTTP 429"] += 1`) shows whether those who do wrong learn why they are refused."""

    def __post_init__(self) -> None:
        if not ipaddress.ip_address(self.host).is_loopback:
            raise ValueError(f"{self.host} is not on this machine's loopback: attacks are aimed at nothing else")

    @property
    def http(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def ws(self) -> str:
        return f"ws://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Attack:
    """`run(target, seconds)` returns after about `seconds`, with all it opened closed; what the server refuses, closes
    or resets is no error."""

    name: str
    """As `python -m tests.attacks NAME` takes it."""
    says: str
    """What it does, in one line."""
    run: Callable[[Target, float], Awaitable[None]]
    by_stranger: bool = False
    """It needs no key."""
