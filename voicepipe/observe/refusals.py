"""Calls that were not admitted, counted: a flood of them takes no more memory than a few."""

from collections import OrderedDict

STEP_S = 10
"""Width of a count: of a point of the dashboard's shortest time axis."""
KEPT_S = 3 * 3600
"""Its longest one."""


class Refusals:
    """Times are Unix seconds."""

    def __init__(self) -> None:
        self._counts: OrderedDict[int, dict[str, int]] = OrderedDict()
        """By step, the oldest first, and by tenant."""

    def add(self, tenant: str, now: float) -> None:
        counts = self._counts.setdefault(int(now // STEP_S), {})
        counts[tenant] = counts.get(tenant, 0) + 1
        while next(iter(self._counts)) < (now - KEPT_S) // STEP_S:
            self._counts.popitem(last=False)

    def since(self, start: float, tenant: str | None) -> int:
        """Of this tenant, or of all, from the step of `start` on."""
        kept = [counts for step, counts in self._counts.items() if step >= start // STEP_S]
        return sum(sum(counts.values()) if tenant is None else counts.get(tenant, 0) for counts in kept)
