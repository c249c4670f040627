"""How many calls a host holds, found by how their turns go. Pure: times are monotonic seconds, given by who calls.

Additive increase and multiplicative decrease (Chiu and Jain, 1989), as TCP finds what a network holds. To refuse
callers until a minute without late turns has passed is not enough: the host is empty by then, takes all who wait at
once, and is late again.
"""

CUT = 0.8
"""Late turns: so much of the calls at that moment is the new limit."""
BACKLOG_S = 5.0
"""What has piled up makes turns late for so long after a cut. They say nothing of the new limit."""
RISE_S = 60.0
"""With turns in time and all calls that the limit allows, more are tried after so long: one more up to the number at
which turns were late last, and beyond it twice as many more each time. Trouble among few calls says little of many."""
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
        self._was_cut = False
        """In the trouble that there is, or was last."""
        self._late_at, self._step = 0, 1

    def judge(self, now: float, took_ms: float | None, calls: int, *, broken: bool = False) -> None:
        """Turns since `since` took so long beside so many calls; None: they are too few to tell.

        `broken`: only those were late whose engine failed. Nobody is let in meanwhile, and the limit stays: engines
        that fail say nothing of how many calls they hold.
        """
        if took_ms is not None and took_ms > self._budget_ms:
            new = now >= self._late_until  # Else it is the same trouble still, and nobody was let in since.
            if not broken and (new or not self._was_cut):
                self._cut(calls)
            elif new:
                self._was_cut = False
            self.since = now + BACKLOG_S
            self._changed, self._late_until, self._late_ms = now, now + LATE_S, took_ms
            return
        if took_ms is not None:
            self._late_until = now
        if calls >= self.calls < self._slots and now - self._changed >= RISE_S:
            self.calls = min(self._slots, self.calls + self._step)
            self._step = 2 * self._step if self.calls > self._late_at else 1
            self._changed = self.since = now

    def _cut(self, calls: int) -> None:
        self._late_at, self._step, self._was_cut = min(self.calls, calls), 1, True
        self.calls = max(1, int(self._late_at * CUT))

    def least_ms(self, now: float, calls: int) -> float:
        """What turns will take with one more call, at least: what they took when they were late with as many."""
        return self._late_ms if calls >= self.calls or now < self._late_until else 0.0
