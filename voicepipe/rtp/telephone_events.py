"""Keys of a phone as RTP events (RFC 4733): received, and sent. Pure; timestamps are of the stream that carries them.

All packets of one key carry the timestamp at which it went down (RFC 4733, 2.2.1), so that any one of them is enough to
know of it. Not all senders keep to that: `_Press` says which packets are one press.
"""

import struct
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from voicepipe.rtp.packet import PacketError, RtpPacket, newer_by

KEYS = "0123456789*#ABCD"
"""Keys by their event number; higher numbers are no keys."""
ENDS = 3
"""The last packet of a key is sent so often, as nothing follows that would show its loss."""
PAUSE_S = 0.060
"""Seconds without a key between two, at least: with less, a gateway that makes tones of them makes one of two."""
WAITING = 80
"""Keys that may wait to be sent: some 20 s of them."""
HELD_S = 0.160
"""Seconds for which each key is down."""
_PAYLOAD = struct.Struct("!BBH")
_SEGMENT = 0xFFFF
"""A key that is held for longer than the duration can express goes on as a new event that begins there, without a
marker (RFC 4733, 2.5.1.3)."""
_NEARLY_SEGMENT = 64_000
"""A duration above this is about to begin again at 0. Some senders leave the timestamp as it is then."""
_KEY_UP = 320
"""In units of the timestamp, 40 ms at 8 kHz: no phone has a key up for less between two presses."""
_CLOSE = 5
"""Packets that are no further apart than this, 100 ms, may be copies: first and last packets are often sent three
times."""
_REMEMBERED = 8
"""Presses whose late packets are still recognised."""
_LATE = 1 << 18
"""A timestamp that is away by more than this, 5 to 33 s, is no late packet's: it begins a new stream."""
_LATE_PACKETS = 500
"""So does a sequence number that lies back by more than this: 10 s."""
_VOLUME = 10
"""Volume of -10 dBm0, as phones send it."""


class KeyFormat(NamedTuple):
    """The format of keys in a stream, by its SDP."""

    payload_type: int
    """The payload type of telephone-event."""
    clock: int
    """Clock of the durations in Hz. By the RFC it is the sound's; phones with Opus often have only 8000."""


class TelephoneEvent(NamedTuple):
    """The payload of a packet of telephone events."""

    number: int
    ended: bool
    duration: int
    """Duration up to now, in `KeyFormat.clock`."""
    volume: int = _VOLUME

    @classmethod
    def parse(cls, payload: bytes) -> "TelephoneEvent":
        """Parse a payload. Raises PacketError."""
        if len(payload) < _PAYLOAD.size:
            raise PacketError(f"{len(payload)} bytes are too few for an event")
        number, flags, duration = _PAYLOAD.unpack_from(payload)
        return cls(number, bool(flags & 0x80), duration, flags & 0x3F)

    def __bytes__(self) -> bytes:
        return _PAYLOAD.pack(self.number, (0x80 if self.ended else 0) | self.volume, self.duration)


@dataclass(slots=True)
class _Press:
    """A press of a key, by its packets so far. Sequence numbers are unwrapped."""

    number: int
    first: int
    """Sequence number of its first packet that came."""
    last: int = 0
    """Sequence number of its newest one, from which all below comes."""
    timestamp: int = 0
    duration: int = 0
    lasts: int = 0
    """Its duration so far from `timestamp` on, at least, in units of the timestamp."""
    marked: bool = False
    ended: bool = False

    def take(self, seq: int, packet: RtpPacket, event: TelephoneEvent) -> None:
        """Add its newest packet."""
        ahead = newer_by(packet.timestamp, self.timestamp, 32)
        self.lasts = max(self.lasts - max(0, ahead), event.duration)
        self.last, self.timestamp, self.duration = seq, packet.timestamp, event.duration
        self.marked, self.ended = packet.marker, event.ended

    def goes_on(self, seq: int, packet: RtpPacket, event: TelephoneEvent) -> bool:
        """Whether a packet that was sent after all of its packets is one of its own, and not a new press's.

        By RFC 4733 (2.5.1.2) it is if it has the same event and the same timestamp. Some senders leave the timestamp as
        it is from one key to the next; others move it on with each packet of one key, or with copies of its last
        packet. So the other signs count as well. With the same event it is a new press:

        - at a marker (2.2.2: the first packet has it), unless that is a copy of a first packet, or the sender sets it
          on each: then the duration grows;
        - after the end (E bit, 2.2.1), unless it is another end, not shorter (2.5.1.4: the end is sent three times),
          whose timestamp is too early for the key to be down again;
        - where the duration falls, which within one press only grows (2.2.1), unless it has run over (2.5.1.3), or does
          not grow for long;
        - at a timestamp at which this press was over and its key up, unless timestamp and duration grow alike.
        """
        if event.number != self.number:
            return False
        ahead, longer = newer_by(packet.timestamp, self.timestamp, 32), event.duration - self.duration
        close = seq - self.last <= _CLOSE
        if packet.marker:
            return (self.marked and close and ahead == longer == 0) or (
                not self.ended and longer > 0 and ahead in (0, longer)
            )
        begun = self.last > self.first  # Else it may be all of the press.
        if self.ended:
            copy = begun and close and longer == 0 and ahead < self.lasts + _KEY_UP
            return event.ended and longer >= 0 and ahead >= 0 and (copy or ahead < self.lasts)
        if self.duration > _NEARLY_SEGMENT or ahead == _SEGMENT:
            return ahead >= 0
        if event.ended and ahead == 0:
            return True
        if longer == 0 and not close:
            return False
        return longer >= 0 and (ahead == longer or 0 <= ahead < self.lasts + _KEY_UP)


class KeyReceiver:
    """Finds presses of keys in packets: each once, at the first of its packets that comes."""

    def __init__(self) -> None:
        self._ssrc: int | None = None
        self._presses: list[_Press] = []
        """The latest ones, in the order in which they were sent."""

    def heard(self, packet: RtpPacket) -> str | None:
        """The key of this packet of events, if it is the first of a press. Raises PacketError."""
        event = TelephoneEvent.parse(packet.payload)
        seq = self._unwrapped(packet)
        behind = next((n for n, press in enumerate(reversed(self._presses)) if press.first <= seq), len(self._presses))
        place = len(self._presses) - behind
        before, after = self._presses[max(0, place - 1) : place], self._presses[place : place + 1]
        if not after and before and seq > before[0].last:
            if before[0].goes_on(seq, packet, event):
                before[0].take(seq, packet, event)
                return None
        elif any(press.number == event.number for press in before + after):
            return None  # A late packet, or a copy.
        elif not before and len(self._presses) == _REMEMBERED:
            return None  # As late as that, it is of a press that is forgotten.
        press = _Press(event.number, seq)
        press.take(seq, packet, event)
        self._presses.insert(place, press)
        del self._presses[:-_REMEMBERED]
        return KEYS[event.number] if event.number < len(KEYS) else None

    def _unwrapped(self, packet: RtpPacket) -> int:
        """The sequence number, counted on from the last one. A source that begins a new stream has its packets read as
        new."""
        if self._presses and packet.ssrc == self._ssrc:
            latest = self._presses[-1]
            ahead = newer_by(packet.seq, latest.last & 0xFFFF, 16)
            if ahead > 0:
                return latest.last + ahead
            if ahead >= -_LATE_PACKETS and abs(newer_by(packet.timestamp, latest.timestamp, 32)) < _LATE:
                return latest.last + ahead
        self._ssrc = packet.ssrc
        self._presses.clear()
        return packet.seq


class KeySender:
    """Sends keys one after another, 20 ms at a time. Timestamps count in the stream's RTP clock `clock`, durations in
    `durations` (`KeyFormat.clock`)."""

    def __init__(self, clock: int, durations: int) -> None:
        self.durations = durations
        self._clock = clock
        self._waiting: deque[int] = deque()
        """Event numbers of the keys."""
        self._began: int | None = None
        self._free: int | None = None
        """The timestamp from which on the next key may go down."""
        self._ends = 0

    def press(self, keys: str) -> None:
        """Queue keys. Raises ValueError, and queues none: not all are keys, or too many wait already."""
        if not keys or not set(keys) <= set(KEYS):
            raise ValueError(f"{keys!r} holds what is no key: keys are {KEYS}.")
        if len(self._waiting) + len(keys) > WAITING:
            raise ValueError(f"Too many keys wait to be sent, at most {WAITING} may: send these a little later.")
        self._waiting.extend(map(KEYS.index, keys))

    @property
    def is_pressing(self) -> bool:
        """Whether keys wait to be sent, or one is down."""
        return bool(self._waiting)

    def wants(self, timestamp: int) -> bool:
        """Whether the packet of this moment is a key's. Timestamps do not wrap here."""
        return bool(self._waiting) and (self._free is None or timestamp >= self._free)

    def packet(self, timestamp: int) -> tuple[int, bytes, bool]:
        """The timestamp that the packet of this moment carries, its payload, and whether it is a key's first."""
        whole = round(HELD_S * self.durations)
        first = self._began is None
        self._began = began = timestamp if self._began is None else self._began
        duration = min((timestamp - began + self._clock // 50) * self.durations // self._clock, whole)
        event = TelephoneEvent(self._waiting[0], duration == whole, duration)
        if event.ended:
            self._ends += 1
            if self._ends == ENDS:
                self._waiting.popleft()
                self._began, self._ends = None, 0
                self._free = timestamp + round((0.020 + PAUSE_S) * self._clock)
        return began, bytes(event), first
