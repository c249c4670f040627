"""How long to wait for the recogniser when a silence begins. Pure: it gets the times that answers took, and no clock.

The caller hears nothing meanwhile, and the steps of a late reply begin only when the turn is over. So a recogniser that
hangs must be given up early; and one that is slow, on a small machine, must not be. How long it takes is learnt from
the turns before.
"""

from collections import deque
from statistics import median

LATELY = 9
"""Turns."""
TIMES = 4
"""The wait is so many times the usual one: enough for the turns that take longer."""


class Patience:
    """How long to wait for one recogniser, learnt from how long it took lately. All its calls share one."""

    def __init__(self) -> None:
        self._took_ms: deque[float] = deque(maxlen=LATELY)

    @property
    def is_informed(self) -> bool:
        """Whether anything is known."""
        return bool(self._took_ms)

    def took(self, ms: float) -> None:
        """The recogniser had the words after `ms`; or it had none by then and was given up, so that it took at least so
        long."""
        self._took_ms.append(ms)

    def ms(self, least: float, most: float) -> float:
        """How long to wait, from `least` to `most` ms; `most` as long as nothing is known."""
        usual = TIMES * median(self._took_ms) if self._took_ms else most
        return max(least, min(most, usual))
