"""Keys of a phone as RTP events (RFC 4733): heard, and sent. Pure; timestamps are of the stream that carries them.

All packets of one key carry the timestamp at which it went down, so that any one of them is enough to know of it.
"""

import struct
from collections import deque
from typing import NamedTuple

from voicepipe.rtp.packet import PacketError, RtpPacket, newer_by

KEYS = "0123456789*#ABCD"
"""By their event number; those above are no keys."""
ENDS = 3
"""The last packet of a key is sent so often, as nothing follows that would tell that it was lost."""
PAUSE_S = 0.060
"""At least so long no key is down between two: less, and a gateway that makes tones of them makes one of two."""
WAITING = 80
"""Keys that may wait to be sent: some 20 s of them."""
LONGEST_S = 1.0
"""The duration has 16 bits: 1.4 s at 48 kHz."""
_PAYLOAD = struct.Struct("!BBH")
_SEGMENT = 0xFFFF
"""A key that is held for longer than the duration can say goes on as a new event that begins there."""
_LATE = 1 << 18
"""A timestamp that lies back by less than this, 5 to 33 s, is that of a packet overtaken by a later key's."""
_VOLUME = 10
"""-10 dBm0, as phones send it."""


class KeyFormat(NamedTuple):
    """How a stream carries keys, as its SDP says."""

    payload_type: int
    """Of telephone-event."""
    clock: int
    """Durations count in it, in Hz. By the letter it is the sound's; phones that speak Opus often have but 8000."""


class TelephoneEvent(NamedTuple):
    """The payload of one packet."""

    number: int
    ended: bool
    duration: int
    """Up to now, in `KeyFormat.clock`."""
    volume: int = _VOLUME

    @classmethod
    def parse(cls, payload: bytes) -> "TelephoneEvent":
        """Raises PacketError."""
        if len(payload) < _PAYLOAD.size:
            raise PacketError(f"{len(payload)} bytes are too few for an event")
        number, flags, duration = _PAYLOAD.unpack_from(payload)
        return cls(number, bool(flags & 0x80), duration, flags & 0x3F)

    def __bytes__(self) -> bytes:
        return _PAYLOAD.pack(self.number, (0x80 if self.ended else 0) | self.volume, self.duration)


class KeyReceiver:
    """Tells each key once, at the first of its packets that comes."""

    def __init__(self) -> None:
        self._ssrc: int | None = None
        self._timestamp = self._number = 0

    def heard(self, packet: RtpPacket) -> str | None:
        """The key that this packet of events tells of, if it is the first to do so. Raises PacketError."""
        event = TelephoneEvent.parse(packet.payload)
        ahead = newer_by(packet.timestamp, self._timestamp, 32)
        goes_on = ahead == _SEGMENT and event.number == self._number
        if packet.ssrc == self._ssrc and (goes_on or -_LATE < ahead <= 0):
            self._timestamp += _SEGMENT if goes_on else 0
            return None
        self._ssrc, self._timestamp, self._number = packet.ssrc, packet.timestamp, event.number
        return KEYS[event.number] if event.number < len(KEYS) else None


class KeySender:
    """Keys to be sent one after another, 20 ms at a time. Timestamps count in the stream's RTP clock `clock`, durations
    in `durations` (`KeyFormat.clock`)."""

    def __init__(self, clock: int, durations: int) -> None:
        self.durations = durations
        self._clock = clock
        self._waiting: deque[tuple[int, int]] = deque()
        """Number and duration."""
        self._began: int | None = None
        self._free: int | None = None
        """From this timestamp on the next key may go down."""
        self._ends = 0

    def press(self, keys: str, ms: int) -> None:
        """Raises ValueError, and sends none of them: not all are keys, or too many wait already."""
        if not keys or not set(keys) <= set(KEYS):
            raise ValueError(f"{keys!r} holds what is no key: keys are {KEYS}.")
        if len(self._waiting) + len(keys) > WAITING:
            raise ValueError(f"Too many keys wait to be sent, at most {WAITING} may: send these a little later.")
        span = min(max(ms / 1000, 0.04), LONGEST_S)
        self._waiting.extend((KEYS.index(key), round(span * self.durations)) for key in keys)

    def wants(self, timestamp: int) -> bool:
        """Whether the packet of this moment is a key's. Timestamps do not wrap here."""
        return bool(self._waiting) and (self._free is None or timestamp >= self._free)

    def packet(self, timestamp: int) -> tuple[int, bytes, bool]:
        """The timestamp that the packet of this moment carries, its payload, and whether it is a key's first."""
        number, whole = self._waiting[0]
        first = self._began is None
        self._began = began = timestamp if self._began is None else self._began
        duration = min((timestamp - began + self._clock // 50) * self.durations // self._clock, whole)
        ended = duration == whole
        if ended:
            self._ends += 1
            if self._ends == ENDS:
                self._waiting.popleft()
                self._began, self._ends = None, 0
                self._free = timestamp + round((0.020 + PAUSE_S) * self._clock)
        return began, bytes(TelephoneEvent(number, ended, duration)), first
