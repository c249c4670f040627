"""The formats of a stream's payload types (RFC 3551, RFC 3264): sound in a codec, keys, or comfort noise."""

from collections.abc import Iterable, Mapping
from enum import Enum

from voicepipe.rtp.codec import CODECS, COMFORT_NOISE, STATIC, Codec

KEYS = "telephone-event"
"""The name of keys in an rtpmap."""


class NonAudio(Enum):
    """A format of a stream that is no sound."""

    KEYS = "telephone-event"
    NOISE = "CN"
    """Comfort noise (RFC 3389): its sender is silent."""


Format = Codec | NonAudio
Formats = Mapping[int, Format]
"""Formats by payload type."""

NOISE: Formats = {COMFORT_NOISE: NonAudio.NOISE, 19: NonAudio.NOISE}
"""Comfort noise, which some phones send unasked. 19 was comfort noise in drafts of RFC 3551, and still is in some
gateways."""
_KNOWN = {(codec.name, codec.clock): codec for codec in CODECS}
UNMAPPED = {number: (name, 8000, "1") for number, name in STATIC.items()}
"""Payload types that need no rtpmap, as `formats` takes them: a format's name in lower case, clock in Hz, channels."""


def codec_of(name: str, clock: int, channels: str = "") -> Codec | None:
    """The codec of an rtpmap's name (lower case), clock and channels, if we have it."""
    codec = _KNOWN.get((name, clock))
    return codec if codec and (channels in ("", "1") or name == "opus") else None


def formats(maps: Iterable[tuple[int, tuple[str, int, str]]]) -> Formats:
    """The formats that we can receive, of all that a description names by number, and by name, clock and channels."""
    found: dict[int, Format] = {}
    for number, (name, clock, channels) in maps:
        if codec := codec_of(name, clock, channels):
            found[number] = codec
        elif name == KEYS:
            found[number] = NonAudio.KEYS
        elif name == "cn":
            found[number] = NonAudio.NOISE
    return found
