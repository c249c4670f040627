"""How much the caller has heard of what a line has sent, where their side reports nothing: it plays at once, a little
late."""

from collections.abc import Callable
from typing import Protocol


class OnAudio(Protocol):
    """A callback for the sound that a line sends."""

    def __call__(self, data: bytes, ms: float, /) -> None:
        """Called with encoded sound (empty where nobody needs it), and its length in milliseconds."""


class FarEnd:
    """Estimates how much the caller has heard, where their side reports nothing. Counts samples at `rate` Hz.
    `delay_s`: delay of the network and of their buffer together."""

    def __init__(self, rate: int, clock: Callable[[], float], delay_s: float = 0.0) -> None:
        self._rate = rate
        self._clock = clock
        self._delay_s = delay_s
        self.sent = 0
        self._base = 0
        """Samples sent before `_since`, all of them played by then."""
        self._since = 0.0

    def send(self, samples: int) -> None:
        """Count so many samples as sent now."""
        if self.played() >= self.sent:
            self._base, self._since = self.sent, self._clock() + self._delay_s
        self.sent += samples

    def played(self) -> int:
        """Samples that the caller has heard: min(sent, time since the first of them was played)."""
        return min(self._most(), self._base + max(0, int((self._clock() - self._since) * self._rate)))

    def _most(self) -> int:
        """Samples that may have been played by now."""
        return self.sent

    def clear(self) -> int:
        """Drop what was not played yet. Returns those samples: they count neither as sent nor as played."""
        played = self.played()
        lost, self.sent, self._base = self.sent - played, played, played
        return lost

    def remaining_s(self) -> float:
        """Seconds until all of it has been played."""
        return (self.sent - self.played()) / self._rate
