"""How loud our voice is: full, quieter while it is not sure that the caller speaks, or not at all."""

from typing import Literal

import numpy as np

from voicepipe.audio import Pcm

Lowered = Literal["", "ducked", "held"]
RAMP_MS = 5
"""From one level to the next: a step would click."""


class Level:
    """Of one call's playout. `duck_db`: what ducking adds to the level, in dB (negative)."""

    def __init__(self, rate: int, duck_db: float) -> None:
        self.held = False
        """Nothing is sent."""
        self._ramp = rate * RAMP_MS // 1000
        self._duck = 10 ** (duck_db / 20)
        self._gain = self._target = 1.0

    @property
    def full(self) -> bool:
        """What is sent next is at full level, or on its way there."""
        return self._target == 1.0 and not self.held

    def restore(self) -> None:
        """Full, at once: nothing sounds that was ducked or held."""
        self._gain = self._target = 1.0
        self.held = False

    def duck(self) -> None:
        self._target = self._duck

    def hold(self) -> None:
        self.held = True

    def resume(self) -> Lowered:
        """What it was before."""
        was: Lowered = "held" if self.held else "" if self.full else "ducked"
        self._target, self.held = 1.0, False
        return was

    def apply(self, pcm: Pcm) -> Pcm:
        """The next packet at this level, or on the way to it: int16[n]."""
        if self._gain == self._target == 1.0:
            return pcm
        gains = np.full(pcm.size, self._target, np.float32)
        gains[: self._ramp] = np.linspace(self._gain, self._target, self._ramp)
        self._gain = self._target
        return (pcm * gains).astype(np.int16)
