"""How late the 20 ms media clock is, by what its ticks see."""

from voicepipe.rtp.clock import PERIOD_S


class Lateness:
    """Of one call's ticks. They are due every 20 ms; like the clock itself it does not make up for ticks that a stall
    has swallowed."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        """Of each tick but the first."""
        self._due: float | None = None

    def tick(self, now: float) -> float:
        """The tick came at the monotonic second `now`; by how much late."""
        late = 0.0 if self._due is None else max(0.0, now - self._due)
        if self._due is not None:
            self.seconds.append(late)
        due = now if self._due is None else min(now, max(self._due, now - PERIOD_S))
        self._due = due + PERIOD_S
        return late
