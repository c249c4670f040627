"""Who speaks the probes' texts: two natural voices, which are neural networks, and flite. For `generate.py` alone."""

from dataclasses import dataclass

from voicepipe.audio import Pcm


@dataclass(frozen=True, slots=True)
class Take:
    """What a voice said: int16[n] at `rate` Hz."""

    pcm: Pcm
    rate: int
    cut: int = 0
    """The sample at which the caller pauses; 0: nowhere."""
