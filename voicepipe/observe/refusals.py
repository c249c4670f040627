"""Counts of refused calls, in little memory however many there are and however long they are kept. One count of a
tenant and reason takes 4 kB, for as long as the dashboard shows it."""

from array import array
from collections import Counter
from typing import NamedTuple

from voicepipe.base.errors import Reason
from voicepipe.call_api import Refusal

STEP_S = 10
"""Seconds of one count: those of a point on the dashboard's shortest time axis."""
KEPT_S = 3 * 3600
"""Seconds of the dashboard's longest time axis."""
STEPS = KEPT_S // STEP_S + 1
NOT_ADMITTED: tuple[Reason, ...] = ("full", "late", "tenant_full", "draining", "engine_down")
"""Reasons for which a call got no slot: the PoP's are taken, its tenant's, or those for calls that wait to be
connected."""


class _RefusalKind(NamedTuple):
    """The kind of refusals in one count. Reasons are few, and strangers have no tenant: they cannot make it grow."""

    tenant: str
    reason: Reason


class RefusalCounts:
    """Counts of refused calls, in fixed memory. Times are Unix seconds, and do not go back by more than what is
    kept."""

    def __init__(self) -> None:
        self._counts: dict[_RefusalKind, array[int]] = {}
        """A ring of counts for each kind, one a step."""
        self._latest: dict[_RefusalKind, int] = {}
        """The step of each kind's latest refusal."""
        self._step = 0
        """The latest step."""

    def add(self, refusal: Refusal, now: float) -> None:
        step = int(now // STEP_S)
        if step > self._step:
            self._begin(step)
        counted = _RefusalKind(refusal.tenant, refusal.reason)
        ring = self._counts.get(counted)
        if ring is None:
            ring = self._counts[counted] = array("I", [0]) * STEPS
        ring[step % STEPS] += 1
        self._latest[counted] = max(step, self._latest.get(counted, 0))

    def _begin(self, step: int) -> None:
        """Forget the counts of steps that are too old, and rings without counts."""
        for old in [counted for counted, latest in self._latest.items() if latest <= step - STEPS]:
            del self._counts[old], self._latest[old]
        new = min(step - self._step, STEPS)
        first, end = (step - new + 1) % STEPS, (step + 1) % STEPS
        for ring in self._counts.values():
            if first < end:
                ring[first:end] = array("I", bytes(4 * (end - first)))
            else:
                ring[first:] = array("I", bytes(4 * (STEPS - first)))
                ring[:end] = array("I", bytes(4 * end))
        self._step = step

    def since(self, start: float, tenant: str | None) -> Counter[Reason]:
        """The refusals of this tenant, or of all with None, from the step of `start` on."""
        first, end = max(int(start // STEP_S), self._step - STEPS + 1), self._step + 1
        counts: Counter[Reason] = Counter()
        if first < end:
            for of, ring in self._counts.items():
                if tenant in (None, of.tenant):
                    counts[of.reason] += sum(_between(ring, first % STEPS, end % STEPS))
        return +counts


def _between(ring: "array[int]", first: int, end: int) -> "array[int]":
    """Positions from `first` up to `end`, which may be past the ring's seam; all of it where they are the same."""
    return ring[first:end] if first < end else ring[first:] + ring[:end]
