"""Puts packets back in order, and says which are lost. Pure: no clock inside, all times are monotonic seconds.

A jitter buffer that plays must hold everything back, since a gap is heard. A listener need not: what arrives in its
turn is handed on at once, whatever the jitter, and only what others have overtaken is waited for, as long as the last
two seconds' packets were late, counted from the fastest. So a network without jitter adds no delay, and a packet that
is lost adds a few ms to the two after it.
"""

from collections import deque
from dataclasses import dataclass

from voicepipe.rtp.packet import RtpPacket, newer_by

MEASURED = 100
"""Packets by whose lateness the wait for a missing one is set: 2 s."""
LEAST_WAIT_S, MOST_WAIT_S = 0.030, 0.100
"""Bounds of the seconds for which a missing packet is waited for after it was due. The next one, 20 ms later, may just
have overtaken it."""
BASE_S = 5.0
"""Seconds whose fastest packet is the base of the others' lateness, the last 5 to 10: clocks drift."""
STALL_S = 0.4
"""Seconds without a packet after which a sender who announced no silence is silent; networks rarely stall for
longer."""
MOST_LOST = 10
"""More packets lost in a row than these, 200 ms, are left out: a hole is no silence, and ends no turn."""
MOST_WAITING = 500
"""Packets that may wait behind a missing one, 10 s: it is given up after a tenth of one."""
RESTART = 3000
"""A sequence number that jumps further than this begins a new stream (RFC 3550, A.1)."""


@dataclass(frozen=True, slots=True)
class HeardPacket:
    """A packet that came, in its turn."""

    packet: RtpPacket
    arrived: float


@dataclass(frozen=True, slots=True)
class LostPacket:
    """A lost packet, to be concealed. Times here are in the codec's RTP clock."""

    span: int
    following: bytes | None
    """The payload right after it, if that has come."""


@dataclass(frozen=True, slots=True)
class SilentSpan:
    """The sender sends nothing."""

    span: int


PlayoutItem = HeardPacket | LostPacket | SilentSpan


@dataclass(slots=True)
class PacketCounts:
    """Packets since the stream began."""

    received: int = 0
    lost: int = 0
    """Packets that were given up."""
    late: int = 0
    """Packets that came after they had been given up, or for a second time."""


class JitterBuffer:
    """Puts the packets of one stream in order, and says which are lost. Pure: all times are monotonic seconds, passed
    in. `clock` is its RTP clock in Hz."""

    def __init__(self, clock: int) -> None:
        self.counts = PacketCounts()
        self.jitter = 0.0
        """Interarrival jitter in seconds (RFC 3550, 6.4.1)."""
        self.highest_seq = 0
        """The highest sequence number, with the number of its cycles above 16 bits."""
        self._first_seq = 0
        self._clock = clock
        self._span = clock // 50
        self._waiting: dict[int, tuple[RtpPacket, int, float] | None] = {}
        """By unwrapped sequence number: the packet, its unwrapped timestamp, when it arrived. None: it is no sound."""
        self._next: int | None = None
        self._due = 0
        """Unwrapped timestamp at which the next packet begins."""
        self._silent = False
        self._aside = False
        """The last packet in its turn was no sound."""
        self._filled = False
        """Silence was inserted for sound that may still come."""
        self._arrived = 0.0
        self._transit = 0.0
        self._lateness: deque[float] = deque(maxlen=MEASURED)
        self._base, self._base_next, self._base_since = float("inf"), float("inf"), 0.0
        self._seen: tuple[int, int] | None = None

    @property
    def wait_s(self) -> float:
        """How long after it was due a missing packet is waited for."""
        late = sorted(self._lateness)
        usual = late[int(0.95 * len(late))] if late else 0.0
        return min(max(usual, LEAST_WAIT_S), MOST_WAIT_S)

    @property
    def waiting_s(self) -> float:
        """Seconds of sound that have come and were not handed on."""
        return len(self._waiting) * self._span / self._clock

    @property
    def expected(self) -> int:
        """Packets that were sent, by their sequence numbers."""
        return self.highest_seq - self._first_seq + 1 if self._next is not None else 0

    def push(self, packet: RtpPacket, now: float, *, silent: bool = False, sound: bool = True) -> None:
        """A packet that arrived at `now`; `silent`: it means that its sender sends nothing more for a while. One
        without `sound` (a key, comfort noise) only has its turn among the others: its timestamp stands still, and the
        time up to the next sound is silence."""
        if self._next is None or abs(newer_by(packet.seq, self._next & 0xFFFF, 16)) > RESTART:
            self._restart(packet)
        assert self._next is not None
        seq = self._next + newer_by(packet.seq, self._next & 0xFFFF, 16)
        timestamp = self._due + newer_by(packet.timestamp, self._due & 0xFFFFFFFF, 32)
        self.counts.received += 1
        if seq in self._waiting:
            self.counts.late += 1
            return
        if sound:
            self._measure(seq, timestamp, now)
        if seq < self._next or (seq > self._next and len(self._waiting) >= MOST_WAITING):
            self.counts.late += 1
            return
        self.highest_seq = max(self.highest_seq, seq)
        self._waiting[seq] = (packet, timestamp, now) if sound else None
        self._arrived, self._silent = now, silent

    def pop(self, now: float) -> PlayoutItem | None:
        """The next packet, loss or silence that is due by `now`; None: nothing is. Call it until then, at each packet
        and every 20 ms."""
        if self._next is None:
            return None
        while True:
            if self._filled and self._waiting:
                self._resume()
            if self._next in self._waiting:
                if item := self._in_turn():
                    return item
            elif not self._waiting:
                return self._quiet(now)
            elif now < self._given_up_at():
                return None
            elif item := self._missing():
                return item

    def _restart(self, packet: RtpPacket) -> None:
        self._waiting.clear()
        self._lateness.clear()
        # The numbers before a restart count on, so that reports do.
        self._first_seq = packet.seq - max(0, self.expected)
        self._next, self._due, self.highest_seq = packet.seq, packet.timestamp, packet.seq - 1
        self._base = self._base_next = float("inf")
        self._seen, self._filled, self._aside = None, False, False

    def _measure(self, seq: int, timestamp: int, now: float) -> None:
        transit = now - timestamp / self._clock
        if self._seen is not None:
            self.jitter += (abs(transit - self._transit) - self.jitter) / 16
            packets, span = seq - self._seen[0], timestamp - self._seen[1]
            if packets == 1 and 0 < span <= self._clock * 120 // 1000:
                self._span = span
        self._seen, self._transit = (seq, timestamp), transit
        if now - self._base_since > BASE_S:
            self._base, self._base_next, self._base_since = self._base_next, float("inf"), now
        if self._next is not None and seq >= self._next:  # What comes too late says nothing of the fastest.
            self._base_next = min(self._base_next, transit)
            self._base = min(self._base, transit)
        self._lateness.append(transit - self._base)

    def _in_turn(self) -> PlayoutItem | None:
        assert self._next is not None
        found = self._waiting[self._next]
        self._aside = found is None
        if found is None:
            del self._waiting[self._next]
            self._next += 1
            return None
        packet, timestamp, arrived = found
        gap = timestamp - self._due
        self._due = timestamp
        if 0 < gap <= self._clock:
            return SilentSpan(gap)
        if abs(gap) > self._clock:
            self._begin(timestamp, arrived)
        del self._waiting[self._next]
        self._next += 1
        self._due += self._span
        return HeardPacket(packet, arrived)

    def _given_up_at(self) -> float:
        return self._base + self._due / self._clock + self.wait_s

    def _missing(self) -> PlayoutItem | None:
        assert self._next is not None
        first = min(self._waiting)
        found, packets = self._waiting[first], first - self._next
        if found is None or self._aside:  # Next to what is no sound, it was most likely none either.
            self.counts.lost += packets
            self._next = first
            return None
        packet, timestamp, arrived = found
        span = timestamp - self._due
        self.counts.lost += 1
        if packets > MOST_LOST or not 0 < span <= packets * self._clock * 120 // 1000:
            self.counts.lost += packets - 1
            self._next = first
            self._begin(timestamp, arrived)
            return None
        self._next += 1
        self._due += span // packets
        return LostPacket(span // packets, packet.payload if packets == 1 else None)

    def _quiet(self, now: float) -> PlayoutItem | None:
        announced = self._silent or self._filled or self._aside
        if now < (self._given_up_at() if announced else self._arrived + STALL_S):
            return None
        self._filled = True
        self._due += self._span
        return SilentSpan(self._span)

    def _resume(self) -> None:
        """Packets come again: they are heard, even if silence was inserted for them."""
        assert self._next is not None
        first = min(self._waiting)
        self.counts.lost += first - self._next
        self._next, self._filled = first, False
        if found := self._waiting[first]:
            _, timestamp, arrived = found
            if timestamp - self._due < self._span:
                self._begin(timestamp, arrived)

    def _begin(self, timestamp: int, arrived: float) -> None:
        """The next packet begins at `timestamp`, whatever came before; faster packets will show how late it was."""
        self._due = timestamp
        self._base = self._base_next = arrived - timestamp / self._clock
        self._lateness.clear()
