"""How many calls a host holds, found by how their turns go. Pure: times are monotonic seconds, given by who calls.

Additive increase and multiplicative decrease (Chiu and Jain, 1989), as TCP finds what a network holds. To refuse
callers until a minute without late turns has passed is not enough: the host is empty by then, takes all who wait at
once, and is late again.
"""

CUT = 0.8
"""Late turns: so much of the calls at that moment is the new limit."""
SETTLE_S = 5.0
"""What has piled up makes turns late for so long after a cut. They say nothing of the new limit."""
RISE_S = 60.0
"""With turns in time and all calls that the limit allows, one more is tried after so long."""


LATE_S = 60.0
"""So long after late turns nobody is let in, unless turns are seen to be in time again before."""


class CallLimit:
    """Of everybody's calls, or of one tenant's. Begins with every slot."""

    def __init__(self, slots: int, budget_ms: float) -> None:
        self._slots, self._budget_ms = slots, budget_ms
        self.calls = slots
        """At a time."""
        self.since = float("-inf")
        """Turns that ended before this second say nothing of the limit."""
        self._changed = self._late_until = float("-inf")
        self._late_ms = 0.0

    def judge(self, now: float, took_ms: float | None, calls: int) -> None:
        """Turns since `since` took so long beside so many calls; None: they are too few to tell."""
        if took_ms is not None and took_ms > self._budget_ms:
            if now >= self._late_until:  # Else it is the same trouble still, and nobody was let in since.
                self.calls = max(1, int(min(self.calls, calls) * CUT))
            self.since = now + SETTLE_S
            self._changed, self._late_until, self._late_ms = now, now + LATE_S, took_ms
            return
        if took_ms is not None:
            self._late_until = now
        if calls >= self.calls < self._slots and now - self._changed >= RISE_S:
            self.calls += 1
            self._changed = self.since = now

    def least_ms(self, now: float, calls: int) -> float:
        """What turns will take with one more call, at least: what they took when they were late with as many."""
        return self._late_ms if calls >= self.calls or now < self._late_until else 0.0
