"""One call's media, both ways: packets in, sound out, and the reverse. Synchronous; somebody else moves datagrams."""

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Protocol

import numpy as np

from voicepipe.audio import RATE, Pcm
from voicepipe.rtp import rtcp
from voicepipe.rtp.codec import Codec
from voicepipe.rtp.jitter import Counts, Heard, JitterBuffer, Lost, Piece, Silent
from voicepipe.rtp.packet import PacketError, RtpPacket, is_rtcp

PACKET_S = 0.020
AHEAD_S = 5.0
"""Sound that is so far ahead of real time is dropped before it is decoded: what a network held up only catches up."""
REPORT_S = 5.0
"""Between reports (RFC 3550, 6.2), at random from half to one and a half times that."""


class Wire(Protocol):
    """Where packets go: protects (SRTP) and sends them."""

    def send_rtp(self, packet: bytes) -> None: ...

    def send_rtcp(self, packet: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Statistics:
    """How a call's media fares. Counts are packets since it began."""

    received: int
    lost: int
    late: int
    invalid: int
    """Datagrams that were no packet of this stream, or came in masses."""
    sent: int
    jitter_ms: float
    wait_ms: float
    """For so long a missing packet is waited for now."""
    rtt_ms: float | None
    """By the peer's last report; None before there was one."""
    remote_lost: float
    """Share of our packets that the peer missed lately, 0 to 1."""


def cname(ssrc: int) -> str:
    """The name of a stream's source (RFC 7022): as short-lived as the stream."""
    return f"{ssrc:08x}"


class RtpSession:
    """`on_sound(pcm, arrived, filled)` gets the caller's sound in order: int16[n] at 16 kHz, `arrived` when the packet
    came that completed it, `filled` if it was made up. `send` and `tick` are to be called every 20 ms."""

    def __init__(
        self,
        codec: Codec,
        payload_type: int,
        wire: Wire,
        on_sound: Callable[[Pcm, float, bool], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.codec = codec
        self.ssrc = secrets.randbits(32)
        self._type = payload_type
        self._wire = wire
        self._on_sound = on_sound
        self._clock = clock
        self._buffer = JitterBuffer(codec.clock)
        self._encode, self._decode = codec.encoder(), codec.decoder()
        self._remote: int | None = None
        """The peer's SSRC."""
        self._invalid = 0
        self._began: float | None = None
        """When the first packet came."""
        self._heard_s = 0.0
        self._before = Counts()
        """Of sources that the peer does not use any more."""
        # What we send. Half of the numbers are left, so that early losses do not hide that they begin anew (RFC 3711).
        self._seq, self._timestamp = secrets.randbits(15), secrets.randbits(32)
        self._packets = self._bytes = 0
        self._due = 0.0
        """When what was sent last has been played."""
        self._gap = True
        """Between what was sent last and what comes next no packets were sent."""
        self._speaking = False
        self._silence: Pcm = np.zeros(codec.out_rate // 50, np.int16)
        # Reports.
        self._report_at = 0.0
        self._last_sr, self._last_sr_at = 0, 0.0
        self._reported = 0, 0
        """Packets expected and received by the last report."""
        self._rtt: float | None = None
        self._remote_lost = 0.0

    # --- in

    def datagram(self, data: bytes, arrived: float) -> None:
        """RTP or RTCP, decrypted, that reached the socket at the monotonic second `arrived`."""
        try:
            if is_rtcp(data):
                self._hear_report(rtcp.parse(data), arrived)
            else:
                self._hear(RtpPacket.parse(data), arrived)
        except PacketError:
            self._invalid += 1

    def _hear(self, packet: RtpPacket, arrived: float) -> None:
        if packet.payload_type != self._type:
            self._invalid += 1
            return
        self._began = arrived if self._began is None else self._began
        if self._heard_s > arrived - self._began + AHEAD_S:
            self._invalid += 1
            return
        if packet.ssrc != self._remote:
            self._change_source(packet.ssrc)
        self._buffer.push(packet, arrived, silent=len(packet.payload) <= self.codec.silence)
        self._deliver(arrived)

    def _change_source(self, ssrc: int) -> None:
        """The peer began anew."""
        old = self._buffer.counts
        self._before = Counts(*(a + b for a, b in zip(astuple(self._before), astuple(old), strict=True)))
        self._remote, self._buffer = ssrc, JitterBuffer(self.codec.clock)
        self._reported, self._last_sr = (0, 0), 0

    def _deliver(self, now: float) -> None:
        while piece := self._buffer.pop(now):
            pcm = self._sound(piece)
            self._heard_s += pcm.size / RATE
            if isinstance(piece, Heard):
                self._on_sound(pcm, piece.arrived, False)
            else:
                self._on_sound(pcm, now, True)

    def _sound(self, piece: Piece) -> Pcm:
        samples = RATE // 50 if isinstance(piece, Heard) else piece.span * RATE // self.codec.clock
        try:
            match piece:
                case Heard(packet=packet):
                    return self._decode(packet.payload)
                case Lost(following=bytes(following)):
                    return self._decode.recover(following, samples)
                case Silent():
                    return np.zeros(samples, np.int16)
        except ValueError:
            self._invalid += 1
        return self._decode.conceal(samples)

    # --- out

    def send(self, pcm: Pcm) -> None:
        """20 ms of speech at once: int16[n] at the codec's `out_rate`."""
        now = self._clock()
        if now > self._due + 2 * PACKET_S:
            self._skip(now)
        self._send(self._encode(pcm))
        self._speaking = True

    def tick(self, now: float) -> None:
        """What is due without a packet: silence while nothing is said, what is lost, reports."""
        # A packet of speech may be late by as much as it lasts, and is not to be overtaken by silence. Where none came,
        # speech has ended, and what was waited for is made good here: at the next beginning it would be a delay.
        if now >= self._due + (PACKET_S if self._speaking else 0.0):
            if self._speaking or now > self._due + 2 * PACKET_S:
                self._skip(now)
            self._speaking = False
            self._send(self._encode(self._silence))
        self._deliver(now)
        if now >= self._report_at:
            if self._report_at:
                self._report(goodbye=False)
            self._report_at = now + REPORT_S * (0.5 + random.random())

    def close(self) -> None:
        """Tell the peer that nothing follows. What it still sends is not heard."""
        self._report(goodbye=True)
        self._on_sound = _unheard  # Who listened knows us.

    def _skip(self, now: float) -> None:
        """Nothing was sent for a while: timestamps go on with the time."""
        if self._due:
            self._timestamp += round((now - self._due) * self.codec.clock)
        self._due, self._gap = now, True

    def _send(self, payload: bytes) -> None:
        seq, timestamp = self._seq & 0xFFFF, self._timestamp & 0xFFFFFFFF
        self._wire.send_rtp(bytes(RtpPacket(self._type, seq, timestamp, self.ssrc, payload, marker=self._gap)))
        self._gap = False
        self._seq += 1
        self._timestamp += self.codec.clock // 50
        self._due += PACKET_S
        self._packets += 1
        self._bytes += len(payload)

    # --- reports

    def _report(self, *, goodbye: bool) -> None:
        now, unix = self._clock(), time.time()
        sender = None
        if self._packets:
            # The timestamp of this very moment: what was sent last has been played at `_due`.
            timestamp = self._timestamp + round((now - self._due) * self.codec.clock)
            sender = rtcp.SenderInfo(rtcp.ntp(unix), timestamp & 0xFFFFFFFF, self._packets, self._bytes)
        reports = () if self._remote is None else (self._block(now),)
        self._wire.send_rtcp(rtcp.build(self.ssrc, cname(self.ssrc), sender, reports, goodbye=goodbye))

    def _block(self, now: float) -> rtcp.Report:
        assert self._remote is not None
        # What came late was not lost (RFC 3550, 6.4.1): it only was of no use.
        expected, received = self._buffer.expected, self._buffer.counts.received
        due, lost = expected - self._reported[0], expected - received - (self._reported[0] - self._reported[1])
        self._reported = expected, received
        fraction = lost / due if lost > 0 and due > 0 else 0.0
        since = now - self._last_sr_at if self._last_sr else 0.0
        jitter = int(self._buffer.jitter * self.codec.clock)
        return rtcp.Report(
            self._remote, fraction, expected - received, self._buffer.highest_seq, jitter, self._last_sr, since
        )

    def _hear_report(self, report: rtcp.Rtcp, arrived: float) -> None:
        if report.sender and report.ssrc == self._remote:
            self._last_sr, self._last_sr_at = rtcp.middle(report.sender.ntp), arrived
        for block in report.reports:
            if block.ssrc == self.ssrc:
                self._remote_lost = block.fraction_lost
                if block.last_sr:
                    round_trip = (rtcp.middle(rtcp.ntp(time.time())) - block.last_sr) % 2**32 / 65536
                    self._rtt = max(0.0, round_trip - block.since_last_sr)

    def statistics(self) -> Statistics:
        counts, before = self._buffer.counts, self._before
        rtt_ms = None if self._rtt is None else round(1000 * self._rtt, 1)
        return Statistics(
            before.received + counts.received, before.lost + counts.lost, before.late + counts.late, self._invalid,
            self._packets,
            round(1000 * self._buffer.jitter, 1), round(1000 * self._buffer.wait_s, 1), rtt_ms, self._remote_lost,
        )  # fmt: skip


def _unheard(pcm: Pcm, arrived: float, filled: bool) -> None:
    """What comes after the end."""
