"""From voice probabilities and levels to where the caller's voice begins and ends, sample by sample.

Silero says *whether* there is voice, in windows of 32 ms that lag the end of speech by one to three windows. The level
says *where* it ended, in frames of 10 ms. Silence is counted from the last voiced frame, so a wait of 130 ms is 130 ms.
"""

import math
from enum import IntEnum

import msgspec
import numpy as np

from voicepipe.audio import RATE, Pcm, samples_to_ms
from voicepipe.base.ranges import Gain, Ms, Probability
from voicepipe.call_settings import ServerVad

FRAME = RATE // 100
WINDOW = 512
"""Samples of one VAD window at 16 kHz: 32 ms, as Silero wants them (`engines/vad/silero.py`)."""
LOWEST_THRESHOLD = 0.05
SURE_VOICE = 0.9
HISS = RATE * 150 // 1000
"""Samples: so long a consonant without voice may be, that begins a word."""
FLOOR_UP, FLOOR_DOWN, FLOOR_MAX = 0.05, 0.3, -25.0
"""How fast the noise floor (dBFS) follows a frame above and below it, and what it is never taken for."""


class VadConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the caller's voice is distinguished from other sound (`[vad]`). Times are in ms, levels in dB."""

    start_probability: Probability = 0.5
    stop_probability: Probability = 0.35
    telephone_stop_probability: Probability = 0.15
    """Instead of `stop_probability` for sound that was sampled at 8 kHz. Without what is above 4 kHz consonants look
    like pauses: of development sentences in noise 29 in 100 had one of 140 ms or more inside, with this 4 (wide: 2)."""
    perhaps_probability: Probability = 0.1
    """From here on there may be a voice, which ducks a reply. The hiss of "stop" reaches 0.5 up to 150 ms later."""
    start_ms: Ms = 60
    """Voice shorter than this is a click, not a beginning."""
    prefix_ms: Ms = 300
    """Sound before the first voiced sample that the recogniser also gets."""
    above_floor_db: Gain = 8.0
    below_peak_db: Gain = 30.0
    """A frame is voiced when it is this far above the noise floor and not further below the burst's peak."""

    def as_asked(self, detection: ServerVad) -> "VadConfig":
        """This configuration with the client's threshold and prefix; the other probabilities change in proportion."""
        start = min(max(detection.threshold, LOWEST_THRESHOLD), 1 - LOWEST_THRESHOLD)
        stop, telephone_stop = (
            min(probability, start * probability / self.start_probability)
            for probability in (self.stop_probability, self.telephone_stop_probability)
        )
        perhaps = min(start, self.perhaps_probability * start / self.start_probability)
        return msgspec.structs.replace(
            self, start_probability=start, stop_probability=stop, telephone_stop_probability=telephone_stop,
            perhaps_probability=perhaps, prefix_ms=detection.prefix_ms,
        )  # fmt: skip

    def by_telephone(self) -> "VadConfig":
        """This configuration for sound that was sampled at 8 kHz."""
        stop = min(self.stop_probability, self.telephone_stop_probability)
        return msgspec.structs.replace(self, stop_probability=stop)


class Beginning(IntEnum):
    """How much of a voice there is before a burst has begun."""

    NONE = 0
    PERHAPS = 1
    """At least `perhaps_probability`: a hiss, or noise."""
    SHORT = 2
    """A voice that is shorter than `start_ms`."""


class VoiceActivity(msgspec.Struct, frozen=True):
    """What is known about the caller's voice after a block. Positions are samples of the call at 16 kHz."""

    active: bool = False
    """Whether a burst has begun and is not forgotten yet."""
    started: int = 0
    """First voiced sample of the burst."""
    hiss: int = 0
    """Samples of what may be its first consonant, before `started`."""
    last: int = 0
    """End of the last voiced frame."""
    now: int = 0
    """End of the sound heard so far."""
    likely: bool = False
    """The last window would begin no voice: there probably is none now."""
    sure: bool = False
    """The last window's probability agrees that there is no voice; only then may a turn end."""

    @property
    def silence_ms(self) -> float:
        return samples_to_ms(self.now - self.last)

    @property
    def voiced_ms(self) -> float:
        return samples_to_ms(self.last - self.started)

    @property
    def hiss_ms(self) -> float:
        return samples_to_ms(self.hiss)


class VoiceTracker:
    """Finds bursts of the caller's voice. Feed blocks and window probabilities in order, and read `voice`."""

    def __init__(self, config: VadConfig) -> None:
        self.config = config
        self.voice = VoiceActivity()
        self._floor = -60.0
        self._peak = -96.0
        self._run_started: int | None = None
        self._perhaps_started: int | None = None
        self._probability = 0.0
        self._heard = 0

    @property
    def beginning(self) -> Beginning:
        """How much of a voice there is while no burst has begun."""
        if self.voice.active:
            return Beginning.NONE
        if self._run_started is not None:
            return Beginning.SHORT
        return Beginning.NONE if self._perhaps_started is None else Beginning.PERHAPS

    def push(self, pcm: Pcm, pos: int, probabilities: list[float]) -> VoiceActivity:
        """Take one block (int16[n] at `pos`) and the probabilities of the windows that it completed."""
        windowed = max((self._window(p) for p in probabilities), default=0)
        voice, now = self.voice, pos + pcm.size
        last = max(voice.last, windowed, self._last_loud(pcm, pos))
        if voice.active:
            likely = self._probability < self.config.start_probability
            sure = self._probability < self.config.stop_probability
            self.voice = VoiceActivity(True, voice.started, voice.hiss, last, now, likely, sure)
        elif self._run_started is not None and samples_to_ms(self._heard - self._run_started) >= self.config.start_ms:
            before = 0 if self._perhaps_started is None else self._run_started - self._perhaps_started
            self.voice = VoiceActivity(True, self._run_started, min(max(0, before), HISS), max(last, self._heard), now)
        else:
            self.voice = VoiceActivity(now=now, last=voice.last)
        return self.voice

    def forget(self) -> None:
        """Forget the burst, which is dealt with; the next voice is a new one."""
        self.voice = VoiceActivity(now=self.voice.now, last=self.voice.last)
        self._run_started = self._perhaps_started = None
        self._peak = -96.0

    def _window(self, probability: float) -> int:
        """Take one window; returns the sample up to which it makes the sound voiced, 0 if it does not."""
        start, self._heard = self._heard, self._heard + WINDOW
        self._probability = probability
        if probability < self.config.perhaps_probability:
            self._perhaps_started = None
        elif self._perhaps_started is None:
            self._perhaps_started = start
        if self._run_started is None and probability >= self.config.start_probability:
            self._run_started = start
        elif probability < self.config.start_probability and not self.voice.active:
            self._run_started = None
        # A window as sure as this holds voice beyond its middle, however loud the noise around it is.
        return start + WINDOW // 2 if probability >= SURE_VOICE else 0

    def _last_loud(self, pcm: Pcm, pos: int) -> int:
        """End of the block's last frame that its level makes voiced, 0 if none; moves the noise floor and the peak."""
        sound = pcm.astype(np.float32)
        voiced = self._probability >= self.config.stop_probability
        last = 0
        for end in range(FRAME, sound.size + 1, FRAME):
            frame = sound[end - FRAME : end]
            level = 10 * math.log10(float(np.dot(frame, frame)) / (FRAME * 32768.0**2) + 1e-9)
            if not voiced:
                rise = FLOOR_UP if level > self._floor else FLOOR_DOWN
                self._floor = min(FLOOR_MAX, self._floor + rise * (level - self._floor))
                continue
            self._peak = max(level, self._peak)
            if level > max(self._floor + self.config.above_floor_db, self._peak - self.config.below_peak_db):
                last = pos + end
        return last
