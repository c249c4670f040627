"""How many calls a host holds, found by how their turns go. Pure: times are monotonic seconds, given by who calls.

Additive increase and multiplicative decrease (Chiu and Jain, 1989), as TCP finds what a network holds. To refuse
callers until a minute without late turns has passed is not enough: the host is empty by then, takes all who wait at
once, and is late again.
"""

CUT = 0.8
"""Late turns: the new limit is so much of the calls at that moment."""
BACKLOG_S = 5.0
"""Seconds after a cut in which a backlog still makes turns late. They prove nothing about the new limit."""
RISE_S = 60.0
"""With turns in time and all calls that the limit allows, more are tried after so many seconds: one more up to the
number at which turns were late last, and beyond it twice as many more each time. Trouble among few calls proves little
about many."""
LATE_S = 60.0
"""Seconds after late turns in which no call is admitted, unless turns are in time again before."""


class CallLimit:
    """Finds the number of calls that a host can hold, by how late their turns are. It is for everybody's calls, or for
    one tenant's, and begins with every slot. Times are monotonic seconds, passed in."""

    def __init__(self, slots: int, budget_ms: float) -> None:
        self._slots, self._budget_ms = slots, budget_ms
        self.calls = slots
        """Calls at a time."""
        self.since = float("-inf")
        """Turns that ended before this second do not count for the limit."""
        self._changed = self._late_until = float("-inf")
        self._late_ms = 0.0
        self._was_cut = False
        """The limit was cut in the present trouble, or the last one."""
        self._late_at, self._step = 0, 1

    def judge(self, now: float, took_ms: float | None, calls: int, *, broken: bool = False) -> None:
        """Turns since `since` took so long beside so many calls; None: they are too few. `broken`: only those were late
        whose engine failed. Then no call is admitted, and the limit stays: engines that fail prove nothing about the
        number of calls."""
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
        """The least that turns will take with one more call: what they took when they were late with as many."""
        return self._late_ms if calls >= self.calls or now < self._late_until else 0.0
