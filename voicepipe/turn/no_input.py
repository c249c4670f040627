"""Nobody speaks: ask again after a while, and in the end say goodbye; is there sound on the line all the same? Pure:
times are samples of the caller's sound."""

import numpy as np

from voicepipe.agent import Agent
from voicepipe.audio import BLOCK, RATE, Pcm, samples_to_ms

LOUD_DBFS = -40.0
"""Music on hold has -30 to -12 dBFS, a street through a phone about -40, a quiet room and comfort noise below -50."""
MEAN = RATE
"""Samples, 1 s, over which power is averaged, so that notes belong together. What the caller said last, at -20 dBFS, is
forgotten after 5 s."""
_KEPT = 1 - BLOCK / MEAN
_LOUD = 32768.0**2 * 10 ** (LOUD_DBFS / 10)


class NoInput:
    """What to say when the caller of one call says nothing: a question after a while, in the end the goodbye."""

    def __init__(self) -> None:
        self.goodbye = False
        """The last line has been asked for: the call ends once it was said, unless the caller comes back."""
        self._since = 0
        self._spoke = 0
        """Sample up to which somebody spoke, or was about to."""
        self._asked = 0
        self._held: int | None = None
        """Sample from which on sound without a voice has kept the goodbye back; None: it has not."""

    def wait(self, now: int) -> None:
        """Nobody could be expected to speak up to the sample `now`."""
        self._since = self._spoke = now

    def work(self, now: int) -> float:
        """Nobody could be expected to speak up to the sample `now`, since the caller waits for us in silence. Returns
        for how many ms there has been silence."""
        self._since = now
        return samples_to_ms(now - self._spoke)

    def lasts(self, now: int) -> float:
        """For how many ms there has been silence at the sample `now`."""
        return samples_to_ms(now - self._spoke)

    def back(self, now: int) -> None:
        """The caller has spoken."""
        self._asked, self.goodbye, self._held = 0, False, None
        self.wait(now)

    def line(self, now: int, agent: Agent, *, loud: bool = False) -> str:
        """What is to be said at the sample `now`; "" for nothing. While the line is `loud` (`LineSound`), somebody has
        put us on hold, or stands in a loud street: they are asked, but not hung up on for `hold_music_ms`."""
        if loud and self._asked + 1 >= len(agent.no_input) and self._goodbye_waits(now, agent):
            self._since = now
        if not agent.no_input or samples_to_ms(now - self._since) < agent.no_input_ms:
            return ""
        self._asked += 1
        self.goodbye = self._asked >= len(agent.no_input)
        return agent.no_input[min(self._asked, len(agent.no_input)) - 1]

    def _goodbye_waits(self, now: int, agent: Agent) -> bool:
        """Whether sound without a voice keeps the goodbye back, from now on or still."""
        self._held = now if self._held is None else self._held
        return samples_to_ms(now - self._held) < agent.hold_music_ms


class LineSound:
    """Whether a caller's line carries sound that is no voice: hold music, a loud street. Then their phone is not left
    alone in a quiet room."""

    def __init__(self) -> None:
        self._power = 0.0

    def push(self, pcm: Pcm) -> None:
        """Take the next 20 ms: int16[320] at 16 kHz."""
        sound = pcm.astype(np.float32)
        self._power = _KEPT * self._power + (1 - _KEPT) * float(np.dot(sound, sound)) / pcm.size

    @property
    def loud(self) -> bool:
        """Whether the line carries sound now."""
        return self._power > _LOUD
