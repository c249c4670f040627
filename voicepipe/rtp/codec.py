"""What the payload types of an RTP stream stand for (RFC 3551, RFC 3264): a codec's sound, keys, or comfort noise; and
the codecs: payload to sound at 16 kHz, and the line's sound to payload."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import partial
from typing import Protocol

import numpy as np

from voicepipe.audio import RATE, Pcm, g711, g722, opus
from voicepipe.audio.resample import Resampler

FADE = 0.5
"""A concealed packet of G.711 or G.722 repeats the last one at half its level: two in a row are next to silence."""


Encoder = Callable[[Pcm], bytes]
"""Makes the payload of 20 ms of sound: int16[n] at the codec's `out_rate`."""


class Decoder(Protocol):
    """Decodes payloads, and makes up sound for lost ones."""

    def __call__(self, payload: bytes) -> Pcm:
        """int16[n] at 16 kHz. Raises ValueError: the payload is not this codec's."""

    def conceal(self, samples: int) -> Pcm:
        """int16[samples] instead of a packet that is lost."""

    def recover(self, following: bytes, samples: int) -> Pcm:
        """As `conceal`, where the packet after the lost one has come and may contain a copy of it."""


class FadingDecoder:
    """Decoder of a codec without concealment: the last packet is repeated, fading. `decode` gives sound at `rate`
    Hz."""

    def __init__(self, decode: Callable[[bytes], Pcm], rate: int) -> None:
        self._decode = decode
        self._rate = rate
        self._resample = Resampler(rate, RATE, in_step=True)
        self._last: Pcm = np.zeros(1, np.int16)

    def __call__(self, payload: bytes) -> Pcm:
        if not payload:
            raise ValueError("an empty payload is no sound")
        self._last = self._decode(payload)
        return self._resample(self._last)

    def conceal(self, samples: int) -> Pcm:
        self._last = (self._last * FADE).astype(np.int16)
        return self._resample(np.resize(self._last, samples * self._rate // RATE))

    def recover(self, following: bytes, samples: int) -> Pcm:
        return self.conceal(samples)


class Codec:
    """A codec that we can receive and send, as SDP names it."""

    def __init__(self, name: str, payload_type: int, clock: int, out_rate: int, silence: int) -> None:
        self.name = name
        """The name as in SDP's rtpmap, in lower case."""
        self.payload_type = payload_type
        """The one that needs no rtpmap (RFC 3551, 6); where there is none, that of our offers."""
        self.clock = clock
        """RTP clock in Hz."""
        self.out_rate = out_rate
        """Rate in Hz of the sound that the encoder takes."""
        self.silence = silence
        """A payload of at most so many bytes means that its sender is silent and sends nothing more (DTX)."""

    def encoder(self) -> Encoder:
        match self.name:
            case "opus":
                return opus.OpusEncoder(self.out_rate)
            case "g722":
                return g722.G722Encoder()
            case "pcmu" | "pcma":
                return lambda pcm: g711.encode(self.name, pcm)
        raise NotImplementedError(f"nothing here encodes {self.name}")

    def decoder(self) -> Decoder:
        match self.name:
            case "opus":
                return opus.OpusDecoder()
            case "g722":
                return FadingDecoder(g722.G722Decoder(), RATE)
            case "pcmu" | "pcma":
                return FadingDecoder(partial(g711.decode, self.name), g711.RATE)
        raise NotImplementedError(f"nothing here decodes {self.name}")


OPUS = Codec("opus", 111, opus.CLOCK, 24_000, 2)
PCMU = Codec("pcmu", 0, g711.RATE, g711.RATE, 0)
PCMA = Codec("pcma", 8, g711.RATE, g711.RATE, 0)
G722 = Codec("g722", 9, g722.CLOCK, RATE, 0)
CODECS = (OPUS, G722, PCMU, PCMA)
"""All codecs, in the order of our offers."""
COMFORT_NOISE = 13
"""Payload type of comfort noise (RFC 3389), which some phones send, unasked, instead of silence."""


class NonAudio(Enum):
    """A format of a stream that is no sound, by its name in an rtpmap (in lower case)."""

    KEYS = "telephone-event"
    NOISE = "cn"
    """Comfort noise (RFC 3389): its sender is silent."""


Format = Codec | NonAudio
Formats = Mapping[int, Format]
"""Formats by payload type."""

NOISE: Formats = {COMFORT_NOISE: NonAudio.NOISE, 19: NonAudio.NOISE}
"""Comfort noise, which some phones send unasked. 19 was comfort noise in drafts of RFC 3551, and still is in some
gateways."""
UNMAPPED = {codec.payload_type: (codec.name, codec.clock, "1") for codec in (PCMU, PCMA, G722)}
"""Payload types that need no rtpmap (RFC 3551, 6), as `formats` takes them: a format's name in lower case, clock in Hz,
channels."""
_BY_NAME = {(codec.name, codec.clock): codec for codec in CODECS}
_NON_AUDIO = {form.value: form for form in NonAudio}


def none_in_common(offered: Iterable[str]) -> str:
    """The error where a far end offers formats of these names, and no codec of ours is among them."""
    *names, last = [codec.name for codec in CODECS]
    theirs = ", ".join(offered) or "nothing"
    return f"No codec in common: {theirs} is offered; {', '.join(names)} and {last} are spoken here."


def formats(maps: Iterable[tuple[int, tuple[str, int, str]]]) -> Formats:
    """The formats that we can receive, of all that a description names by number, and by name, clock and channels."""
    found: dict[int, Format] = {}
    for number, (name, clock, channels) in maps:
        codec = _BY_NAME.get((name, clock))
        if codec and (channels in ("", "1") or codec is OPUS):
            found[number] = codec
        elif name in _NON_AUDIO:
            found[number] = _NON_AUDIO[name]
    return found
