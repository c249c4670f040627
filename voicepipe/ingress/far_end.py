"""What a line has sent: who is told of it, and how much of it the caller has heard where the far end does not tell: it
plays at once, a little late."""

from collections.abc import Callable
from typing import Protocol


class OnAudio(Protocol):
    """Who follows what a line sends."""

    def __call__(self, data: bytes, ms: float, /) -> None:
        """As encoded (empty where that is nobody's business), and its milliseconds."""


class FarEnd:
    """Counts samples at `rate` Hz. `delay_s`: network and the far end's buffer together."""

    def __init__(self, rate: int, clock: Callable[[], float], delay_s: float = 0.0) -> None:
        self._rate = rate
        self._clock = clock
        self._delay_s = delay_s
        self.sent = 0
        self._base = 0
        """Samples sent before `_since`, all of them played by then."""
        self._since = 0.0

    def send(self, samples: int) -> None:
        """So many more were sent now."""
        if self.played() >= self.sent:
            self._base, self._since = self.sent, self._clock() + self._delay_s
        self.sent += samples

    def played(self) -> int:
        """Of all that was sent: min(sent, time since the first of it was played)."""
        return min(self._most(), self._base + max(0, int((self._clock() - self._since) * self._rate)))

    def _most(self) -> int:
        """Samples that may have been played by now."""
        return self.sent

    def clear(self) -> int:
        """What was not played yet never will be. Returns those samples: they count neither as sent nor as played."""
        played = self.played()
        lost, self.sent, self._base = self.sent - played, played, played
        return lost

    def remaining_s(self) -> float:
        """Until all of it has been played."""
        return (self.sent - self.played()) / self._rate
