"""Counts of refused calls, in little memory however many there are and however long they are kept. One count of a
tenant and reason takes 4 kB, for as long as the dashboard shows it."""

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voicepipe.base.errors import Reason
from voicepipe.call_api import Refusal

STEP_S = 10
"""Seconds of one count: those of a point on the dashboard's shortest time axis."""
KEPT_S = 3 * 3600
"""Seconds of the dashboard's longest time axis."""
STEPS = KEPT_S // STEP_S + 1
NOT_ADMITTED: tuple[Reason, ...] = ("full", "late", "tenant_full", "draining", "engine_down")
"""Reasons for which a call got no slot: the PoP's are taken, or one more call would be late; its tenant's are taken, or
those for calls that wait to be connected; the PoP drains; an engine is down. A new reason (`base.errors.Reason`) also
belongs into `tally.COUNTED`, if it depends on the PoP, and into `ingress.access._ANSWERS`."""


class _RefusalKind(NamedTuple):
    """The kind of refusals in one count. Reasons are few, and strangers have no tenant: they cannot make it grow."""

    tenant: str
    reason: Reason


class RefusalCounts:
    """Counts of refused calls, in fixed memory. Times are Unix seconds, and do not go back by more than what is
    kept."""

    def __init__(self) -> None:
        self._counts: dict[_RefusalKind, NDArray[np.uint32]] = {}
        """A ring of counts for each kind, one a step."""
        self._step = 0
        """The latest step."""

    def add(self, refusal: Refusal, now: float) -> None:
        step = int(now // STEP_S)
        if step > self._step:
            self._begin(step)
        counted = _RefusalKind(refusal.tenant, refusal.reason)
        if counted not in self._counts:
            self._counts[counted] = np.zeros(STEPS, np.uint32)
        self._counts[counted][step % STEPS] += 1

    def _begin(self, step: int) -> None:
        """Forget the counts of steps that are too old, and rings without counts."""
        new = np.arange(max(self._step, step - STEPS) + 1, step + 1) % STEPS
        for ring in self._counts.values():
            ring[new] = 0
        self._counts = {of: ring for of, ring in self._counts.items() if ring.any()}
        self._step = step

    def since(self, start: float, tenant: str | None) -> Counter[Reason]:
        """The refusals of this tenant, or of all with None, from the step of `start` on."""
        wanted = np.arange(max(int(start // STEP_S), self._step - STEPS + 1), self._step + 1) % STEPS
        counts: Counter[Reason] = Counter()
        for of, ring in self._counts.items():
            if tenant in (None, of.tenant):
                counts[of.reason] += int(ring[wanted].sum())
        return +counts
