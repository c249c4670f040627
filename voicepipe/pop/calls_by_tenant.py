"""The number of a PoP's calls, by tenant: in this process, and in the one before it, whose calls take slots of the same
machine."""

import asyncio
from collections import Counter

from voicepipe.base.takeover import TakeoverParts

PART = "calls by tenant"
"""What is handed over (`TakeoverParts`)."""


class CallsByTenant:
    """Counts the calls in progress. `parts`: the process that takes over gets to know how many go on here."""

    def __init__(self, parts: TakeoverParts) -> None:
        self.none_here = asyncio.Event()
        """Set while no call goes on in this process."""
        self.none_here.set()
        self._parts = parts
        self._here: dict[str, int] = {}
        self._elsewhere: dict[str, int] = {}
        parts.join(PART, dict[str, int], lambda: dict(Counter(self._here) + Counter(self._elsewhere)), self._take_over)

    def began(self, tenant: str) -> None:
        """A call of this tenant's has a slot."""
        self._here[tenant] = self._here.get(tenant, 0) + 1
        self.none_here.clear()
        self._parts.changed(PART)

    def ended(self, tenant: str) -> None:
        """It has given its slot back."""
        self._here[tenant] -= 1
        if not sum(self._here.values()):
            self.none_here.set()
        self._parts.changed(PART)

    def of(self, tenant: str) -> int:
        """Calls of this tenant's."""
        return self._here.get(tenant, 0) + self._elsewhere.get(tenant, 0)

    @property
    def all(self) -> int:
        """Calls in all."""
        return sum(self._here.values()) + self.elsewhere

    @property
    def elsewhere(self) -> int:
        """Calls that go on in the process before this one."""
        return sum(self._elsewhere.values())

    def _take_over(self, calls: dict[str, int]) -> None:
        self._elsewhere = calls
