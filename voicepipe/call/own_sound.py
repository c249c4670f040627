"""What one caller has heard from us lately: our own echo is known by it."""

from collections import deque
from functools import cache

from voicepipe.audio import BLOCK_MS, RATE, Pcm
from voicepipe.audio.resample import Stretches
from voicepipe.turn.echo import FAR, WINDOW

ECHO_S = (FAR - WINDOW) / RATE
"""Network, client's buffer and room together may delay our echo by so much, 0.76 s."""


class OwnSound:
    """Packets at `rate` Hz, sent up to `lead_ms` ahead of real time. Times are monotonic seconds."""

    def __init__(self, rate: int, lead_ms: int) -> None:
        self._rate = rate
        self._packets: deque[tuple[float, Pcm]] = deque(maxlen=(1000 * FAR // RATE + lead_ms) // BLOCK_MS + 1)
        self._ends = 0.0

    def plays(self, at: float, pcm: Pcm) -> None:
        """A client that plays at once all that it gets begins to play this packet then."""
        self._packets.append((at, pcm))
        self._ends = at + pcm.size / self._rate

    def cut(self, at: float) -> None:
        """Nothing is played from then on."""
        self._ends = min(self._ends, at)
        while self._packets and self._packets[-1][0] >= at:
            self._packets.pop()

    def heard(self, now: float) -> Pcm | None:
        """In the second up to now, silence included: int16[n] at 16 kHz. None when it is too long ago that they heard
        us."""
        if now > self._ends + ECHO_S:
            return None
        at_16_khz = _at_16_khz(self._rate)
        heard = at_16_khz.stretch
        heard[:] = 0
        for plays, pcm in self._packets:
            end = heard.size + round((plays - now) * self._rate) + pcm.size
            start = end - pcm.size
            if end > 0 and start < heard.size:
                heard[max(0, start) : end] = pcm[max(0, -start) : heard.size - start]
        return at_16_khz()


@cache
def _at_16_khz(rate: int) -> Stretches:
    """For all calls: who fills it converts it in the same breath."""
    return Stretches(rate, RATE, FAR * rate // RATE)
