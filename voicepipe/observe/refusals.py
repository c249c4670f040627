"""Calls that were not admitted, counted: neither many of them nor long days take more memory than a few."""

from array import array

STEP_S = 10
"""Width of a count: of a point of the dashboard's shortest time axis."""
KEPT_S = 3 * 3600
"""Its longest one."""
STEPS = KEPT_S // STEP_S + 1


class Refusals:
    """Times are Unix seconds, and do not go back by more than what is kept."""

    def __init__(self) -> None:
        self._counts: dict[str, array[int]] = {}
        """By tenant: a ring of counts, one a step."""
        self._step = 0
        """The latest one."""

    def add(self, tenant: str, now: float) -> None:
        step = int(now // STEP_S)
        for begun in range(max(self._step, step - STEPS) + 1, step + 1):
            for ring in self._counts.values():
                ring[begun % STEPS] = 0
        self._step = max(self._step, step)
        self._counts.setdefault(tenant, array("Q", [0]) * STEPS)[step % STEPS] += 1

    def since(self, start: float, tenant: str | None) -> int:
        """Of this tenant, or of all, from the step of `start` on."""
        kept = range(max(int(start // STEP_S), self._step - STEPS + 1), self._step + 1)
        rings = [ring for name, ring in self._counts.items() if tenant in (None, name)]
        return sum(ring[step % STEPS] for ring in rings for step in kept)
