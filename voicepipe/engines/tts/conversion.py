"""A voice's sound at another rate."""

import numpy as np

from voicepipe.audio.resample import Resampler
from voicepipe.base.worker import Worker
from voicepipe.engines.base import Speech, Word

converter = Worker("resampling", nice=0)
"""Converts what voices say, for all calls: 1 ms for a sentence, and several where the caches are cold. A reply may wait
for it."""


class Conversion:
    """Converts the pieces of one phrase, in order, from `source` to `target` Hz. What goes on in the next piece is not
    cut off."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._going_on: Resampler | None = None

    def __call__(self, speech: Speech) -> Speech:
        resampler = self._going_on or Resampler(self._source, self._target)
        pcm = resampler(speech.pcm) if speech.more else np.concatenate([resampler(speech.pcm), resampler.flush()])
        self._going_on = resampler if speech.more else None
        scale = self._target / self._source
        return Speech(pcm, tuple(Word(word.text, round(word.end * scale)) for word in speech.words), speech.more)
