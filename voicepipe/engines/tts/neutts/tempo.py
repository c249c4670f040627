"""Slower or faster without another pitch: WSOLA (Verhelst and Roelands, 1993), of sound that comes in pieces. Pure."""

import numpy as np

from voicepipe.engines.tts.neutts.windows import Sound

FRAME_MS, SEARCH_MS = 30, 10
"""Pieces of sound that are laid over one another by half, and how far one is looked for that goes on smoothly: two
periods of a low voice."""


class Tempo:
    """Changes the speed of one phrase's sound, and not its pitch. `speed` 2: in half the time; 1: sound passes
    unchanged. `rate` in Hz."""

    def __init__(self, speed: float, rate: int) -> None:
        self._speed = speed
        self._half = rate * FRAME_MS // 2000
        self._search = rate * SEARCH_MS // 1000
        rising = np.sin(np.pi * (np.arange(self._half) + 0.5) / (2 * self._half)) ** 2
        self._rising = rising.astype(np.float32)
        self._sound: Sound = np.empty(0, np.float32)
        self._dropped = 0
        """Samples before it that are needed no more."""
        self._next = 0.0
        """The sample at which the next frame would begin."""
        self._tail: Sound | None = None
        """The second half of the frame before, which fades out; and in the sound, what would follow it."""
        self._follows = 0

    def push(self, sound: Sound) -> Sound:
        """float32[n] -> float32[m], m about n / speed."""
        if self._speed == 1:
            return sound
        self._sound = np.concatenate([self._sound, sound])
        parts = []
        while (frame := self._frame()) is not None:
            parts.append(frame)
        keep = max(0, min(int(self._next) - self._search, self._follows) - self._dropped)
        self._sound, self._dropped = self._sound[keep:], self._dropped + keep
        return np.concatenate(parts) if parts else np.empty(0, np.float32)

    def flush(self) -> Sound:
        """The sound that is still held back."""
        if self._speed == 1:
            return np.empty(0, np.float32)
        rest = self.push(np.zeros(2 * (self._half + self._search), np.float32))
        return rest if self._tail is None else np.concatenate([rest, self._tail])

    def _frame(self) -> Sound | None:
        """Half a frame more of what comes out; None: it needs more sound."""
        half, at = self._half, round(self._next) - self._dropped
        if at + self._search + 2 * half > self._sound.size:
            return None
        if self._tail is None:
            begin, out = at, self._sound[at : at + half]
        else:
            begin = self._best(at)
            out = (1 - self._rising) * self._tail + self._rising * self._sound[begin : begin + half]
        self._tail = self._sound[begin + half : begin + 2 * half].copy()
        self._follows = self._dropped + begin + half
        self._next += half * self._speed
        return np.asarray(out, np.float32)

    def _best(self, at: int) -> int:
        """The position near `at` where the sound is most like what would have followed."""
        low = max(0, at - self._search)
        near = self._sound[low : at + self._search + self._half]
        like = np.correlate(near, self._tail if self._tail is not None else near, "valid")
        squares = np.concatenate([[0.0], np.cumsum(near.astype(np.float64) ** 2)])
        energy = squares[self._half :] - squares[: -self._half]
        return low + int(np.argmax(like / np.sqrt(energy + 1e-9)))
