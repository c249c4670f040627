"""How long the recogniser is waited for when a silence begins. Pure: told how long it took, asked how long to wait.

Whoever waits hears nothing, and the ladder begins only when the turn is over. So a recogniser that hangs must be given
up early; and one that is slow, on a small machine, must not be: how long it takes is learnt from the turns before.
"""

from collections import deque
from statistics import median

LATELY = 9
"""Turns."""
TIMES = 4
"""What it takes most of the time, so many times over, is enough for the turns that take longer."""


class Patience:
    """With one recogniser; all calls learn of it together."""

    def __init__(self) -> None:
        self._took_ms: deque[float] = deque(maxlen=LATELY)

    @property
    def is_informed(self) -> bool:
        """Whether anything is known."""
        return bool(self._took_ms)

    def took(self, ms: float) -> None:
        """It had the words after so long; or had none by then and was given up: then it took so long at least."""
        self._took_ms.append(ms)

    def ms(self, least: float, most: float) -> float:
        """How long to wait for it, from `least` to `most`; `most` as long as nothing is known."""
        usual = TIMES * median(self._took_ms) if self._took_ms else most
        return max(least, min(most, usual))
