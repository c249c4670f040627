"""Steady background noise out of speech, before a recogniser that was trained on quiet rooms hears it."""

import numpy as np
from numpy.typing import NDArray

from voicepipe.audio import Pcm

FRAME, HOP = 512, 256
"""32 ms frames every 16 ms at 16 kHz; the output is FRAME - HOP samples behind the input."""
LISTEN = 16
"""Hops that are heard before the first output; their quietest give the first noise estimate."""
QUIETEST = 5
FLOOR = 10 ** (-18 / 20)
"""Least gain. Lower ones make holes in quiet consonants."""
MEMORY = 0.96
"""Of the a-priori signal to noise ratio, from frame to frame (decision-directed)."""
LEAST_SNR = 10 ** (-25 / 10)
NOISY = 3.0
"""A bin with less than this many times its noise is taken for noise, which is followed there at the rate FOLLOW."""
FOLLOW = 0.04
LOUD, LOUD_FRAMES = 20.0, 6
"""RMS from which a frame tells whether the line carries more than a telephone's band, and how many must deny it."""
ROUNDING = 6 / 12
"""Power of samples that are nothing but rounded to int16 (1/12), and a little more."""
IMAGES = 1e-4
"""What resampling leaves above a telephone's band, as a share of what is in it; speech and room noise have more."""
TELEPHONE = slice(10, 109)
ABOVE_TELEPHONE = slice(154, FRAME // 2)
"""Bins of 0.3 to 3.4 kHz, and of what 8 kHz sampling can never carry: 4.8 kHz and more."""
WINDOW = np.sqrt(np.hanning(FRAME + 1)[:FRAME])

Spectrum = NDArray[np.float64]


class Denoiser:
    """Ephraim and Malah's log-spectral amplitude estimator (IEEE Trans. ASSP 33(2), 1985), one utterance at a time.

    Give it >= 100 ms of what was heard before the voice: without any, speech itself is taken for noise for a while.
    """

    def __init__(self) -> None:
        self.narrow: bool | None = None
        """The sound has a telephone's band only (it was sampled at 8 kHz); None until there was voice to tell it by."""
        self._loud_frames = 0
        self._rest: NDArray[np.float64] = np.zeros(FRAME - HOP)
        self._first: list[Spectrum] = []
        self._noise: Spectrum | None = None
        self._clean: Spectrum = np.zeros(FRAME // 2 + 1)
        self._overlap: NDArray[np.float64] = np.zeros(FRAME - HOP)

    def clean(self, pcm: Pcm, *, last: bool = False) -> Pcm:
        """int16[n] at 16 kHz -> int16[m], m a multiple of HOP. `last`: do not wait for a better noise estimate."""
        sound = np.concatenate([self._rest, pcm])
        hops = (sound.size - FRAME) // HOP + 1
        if hops > 0:
            frames = np.lib.stride_tricks.sliding_window_view(sound, FRAME)[::HOP][:hops]
            self._first.extend(np.fft.rfft(frames * WINDOW))
            self._rest = sound[hops * HOP :]
        else:
            self._rest = sound
        if self._noise is None:
            if not self._first or len(self._first) < LISTEN and not last:
                return np.empty(0, np.int16)
            # The first frame is half padding.
            powers = np.abs(np.array(self._first[1:LISTEN] or self._first)) ** 2
            quietest = np.argsort(powers.sum(axis=1))[:QUIETEST]
            self._noise = np.maximum(powers[quietest].mean(axis=0), 1.0)
        spectra, self._first = self._first, []
        return np.concatenate([np.empty(0, np.int16), *(self._frame(spectrum) for spectrum in spectra)])

    def _look_at_band(self, power: Spectrum) -> None:
        # |rfft|^2 of windowed noise with power p is p * FRAME / 2 in each bin, for the window's mean square is 1/2.
        within, above = power[TELEPHONE].sum(), power[ABOVE_TELEPHONE]
        if self.narrow is not None or within < LOUD**2 * (FRAME / 2) ** 2:
            return
        self._loud_frames += 1
        # The first frame is cut out of the sound abruptly, which is heard at all frequencies.
        if self._loud_frames > 1 and above.mean() > ROUNDING * FRAME / 2 and above.sum() > IMAGES * within:
            self.narrow = False
        elif self._loud_frames > LOUD_FRAMES:
            self.narrow = True

    def _frame(self, spectrum: Spectrum) -> Pcm:
        assert self._noise is not None
        power = np.abs(spectrum) ** 2
        self._look_at_band(power)
        posterior = np.minimum(power / self._noise, 1e4)
        prior = np.maximum(MEMORY * self._clean + (1 - MEMORY) * np.maximum(posterior - 1, 0), LEAST_SNR)
        wiener = prior / (1 + prior)
        gain = np.clip(wiener * np.exp(0.5 * _exponential_integral(wiener * posterior)), FLOOR, 1)
        self._clean = gain**2 * posterior
        follow = np.where(posterior < NOISY, FOLLOW, 0.0)
        self._noise = np.maximum((1 - follow) * self._noise + follow * power, 1.0)
        sound = np.fft.irfft(spectrum * gain) * WINDOW
        sound[:HOP] += self._overlap
        self._overlap = sound[HOP:]
        hop: Pcm = np.clip(sound[:HOP], -32768, 32767).astype(np.int16)
        return hop


def _exponential_integral(v: Spectrum) -> Spectrum:
    """E1(v), by the piecewise fit of Martin et al. (2003); within 0.1 where it matters."""
    log = np.log10(np.maximum(v, 1e-8))
    return np.where(v < 0.1, -2.31 * log - 0.6, np.where(v <= 1, -1.544 * log + 0.166, 10 ** (-0.52 * v - 0.26)))
