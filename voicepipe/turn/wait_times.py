"""How long to wait for more, by how likely it is that the caller has finished. Pure.

A caller who is silent has finished, or hesitates. Of those who hesitate, fewer and fewer are still silent after t ms,
so that the silence itself is evidence, and grows by itself. What it is weighed against is a price: to speak while
somebody goes on is an interruption, and to make somebody wait who has finished is a delay. The wait that costs least
on average is the one that is taken.

Evidence that comes during the wait changes how likely the end is, and nothing else: that the silence has lasted until
then is known from the start, whichever wait is weighed.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from voicepipe.base import odds

STEP_MS = 10
"""Waits are weighed in steps of so much."""
SUREST, STEPS = 12.0, 20
"""Log-odds further from 0 change nothing; so many different ones in each unit."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long people who go on are silent inside a phrase, in ms. Log-normal, as silent pauses in speech are (Campione
    and Veronis, "A large-scale multilingual study of silent pause duration", Speech Prosody 2002)."""

    median_ms: float
    spread: float
    """Standard deviation of the natural logarithm."""

    def longer(self, ms: float) -> float:
        """The share (0..1) of the pauses that last longer than `ms`."""
        if ms <= 0:
            return 1.0
        return 0.5 * math.erfc(math.log(ms / self.median_ms) / (self.spread * math.sqrt(2)))


@dataclass(frozen=True, slots=True)
class WaitTimes:
    """The silence in ms that ends a turn, by the log-odds that the turn is complete."""

    shortest_ms: float
    longest_ms: float
    cut_in_ms: float
    """An interruption is as bad as a wait this long."""
    growth: float
    """A wait that is twice as long is 2 ** `growth` times as bad."""
    pauses: Pauses

    def ms(self, log_odds: float) -> float:
        """The wait, between `shortest_ms` and `longest_ms`; the likelier the end, the shorter."""
        near = round(STEPS * max(-SUREST, min(SUREST, log_odds)))
        return _least(self, near)


@lru_cache(4096)
def _least(waits: WaitTimes, near: int) -> float:
    """The wait of least cost at log-odds of `near` / STEPS."""
    complete = odds.probability(near / STEPS)
    count = max(0, math.ceil((waits.longest_ms - waits.shortest_ms) / STEP_MS))
    every = [*(waits.shortest_ms + STEP_MS * step for step in range(count)), waits.longest_ms]

    def cost(ms: float) -> float:
        delay: float = (ms / waits.cut_in_ms) ** waits.growth
        return complete * delay + (1 - complete) * waits.pauses.longer(ms)

    return min(every, key=cost)
