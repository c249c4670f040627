"""One call's media, both ways: packets in, sound out, and the reverse. Synchronous; somebody else moves datagrams."""

import time
from collections.abc import Callable
from dataclasses import astuple, dataclass

import numpy as np

from voicepipe.audio import RATE, Pcm
from voicepipe.rtp import rtcp
from voicepipe.rtp.codec import COMFORT_NOISE, Codec
from voicepipe.rtp.jitter import Counts, HeardPacket, JitterBuffer, Lost, Piece, Silent
from voicepipe.rtp.packet import PacketError, RtpPacket, is_rtcp
from voicepipe.rtp.reports import Reports
from voicepipe.rtp.rtp_sender import PacketWire, RtpSender
from voicepipe.rtp.telephone_events import KeyFormat, KeyReceiver

AHEAD_S = 5.0
"""Sound that is so far ahead of real time is dropped before it is decoded: what a network held up only catches up."""
AT_ONCE = 10
"""Pieces of sound, 200 ms, that are decoded and heard between two ticks: what a network has held up for longer follows
with the next ticks, so that other calls have their turns."""


MOST_BEFORE = 50
"""Pieces, 1 s, of a source that has changed."""


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
    came that completed it, `filled` if it was made up. It can be set later: without it the sound waits, 10 s at most.
    `on_key` gets the keys they press, if `keys` says how they are sent. `send` and `tick` are to be called every
    20 ms."""

    def __init__(
        self,
        codec: Codec,
        payload_type: int,
        wire: PacketWire,
        on_sound: Callable[[Pcm, float, bool], None] | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        keys: KeyFormat | None = None,
        on_key: Callable[[str], None] | None = None,
    ) -> None:
        self.codec = codec
        self._type, self._keys_type = payload_type, keys.payload_type if keys else None
        self._wire = wire
        self.on_sound, self._on_key = on_sound, on_key or _unpressed
        self._clock = clock
        self._out = RtpSender(codec, payload_type, keys, wire, clock)
        self.ssrc = self._out.ssrc
        self._buffer, self._decode = JitterBuffer(codec.clock), codec.decoder()
        self._keys = KeyReceiver()
        self._reports = Reports()
        self._remote: int | None = None
        """The peer's SSRC."""
        self._deaf = False
        """On hold: whatever sounds is not the caller."""
        self._heard_at = clock()
        """When the peer's last packet came, or from when on one is missed."""
        self._invalid = 0
        self.hasty = 0
        """Packets among them that came faster than sound is made."""
        self._began: float | None = None
        """When the first packet came."""
        self._heard_s = 0.0
        self._room = AT_ONCE
        """So many more pieces may be heard before the next tick."""
        self._before = Counts()
        """Of sources that the peer does not use any more."""

    def begin(self) -> None:
        """The call is accepted: from now on the peer is missed."""
        self._heard_at = self._clock()

    # --- in

    def datagram(self, data: bytes, arrived: float) -> None:
        """RTP or RTCP, decrypted, that reached the socket at the monotonic second `arrived`."""
        try:
            if is_rtcp(data):
                self._reports.heard(rtcp.parse(data), arrived, ours=self.ssrc, remote=self._remote)
                self._heard_at = arrived
            else:
                self._hear(RtpPacket.parse(data), arrived)
        except PacketError:
            self._invalid += 1

    def _hear(self, packet: RtpPacket, arrived: float) -> None:
        sound = packet.payload_type == self._type
        if not sound and packet.payload_type not in (self._keys_type, COMFORT_NOISE):
            self._invalid += 1
            return
        self._began = arrived if self._began is None else self._began
        if self._heard_s + self._buffer.waiting_s > arrived - self._began + AHEAD_S:
            self._invalid += 1
            self.hasty += 1
            return
        self._heard_at = arrived
        if packet.payload_type == self._keys_type and (key := self._keys.heard(packet)):
            self._on_key(key)
        if self._deaf:
            return
        if sound and packet.ssrc != self._remote:
            self._change_source(packet.ssrc)
        if packet.ssrc == self._remote:
            self._buffer.push(packet, arrived, silent=len(packet.payload) <= self.codec.silence, sound=sound)
            self._deliver(arrived)

    @property
    def behind(self) -> bool:
        """More has come than is heard before the next tick."""
        return self._room == 0

    def _hear_out(self) -> None:
        """What has come is heard before something else begins: 1 s of it at most."""
        room, self._room = self._room, MOST_BEFORE
        self._deliver(self._clock())
        self._room = room

    def _change_source(self, ssrc: int | None) -> None:
        """The peer began anew."""
        self._hear_out()
        old = self._buffer.counts
        self._before = Counts(*(a + b for a, b in zip(astuple(self._before), astuple(old), strict=True)))
        self._remote, self._buffer = ssrc, JitterBuffer(self.codec.clock)
        self._reports.restart()

    def _deliver(self, now: float) -> None:
        while self.on_sound and self._room and (piece := self._buffer.pop(now)):
            self._room -= 1
            pcm = self._sound(piece)
            self._heard_s += pcm.size / RATE
            if isinstance(piece, HeardPacket):
                self.on_sound(pcm, piece.arrived, False)
            else:
                self.on_sound(pcm, now, True)

    def _sound(self, piece: Piece) -> Pcm:
        samples = RATE // 50 if isinstance(piece, HeardPacket) else piece.span * RATE // self.codec.clock
        try:
            match piece:
                case HeardPacket(packet=packet):
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
        """20 ms of speech at once: int16[n] at the codec's `out_rate`. Under a key or on hold it is not sent."""
        self._out.send(pcm)

    def press(self, keys: str, ms: int = 160) -> None:
        """Send keys (`dtmf.KEYS`) one after another, in place of what is said meanwhile; on hold they wait. Raises
        ValueError, and sends none: the peer takes none, not all are keys, or too many wait already."""
        self._out.press(keys, ms)

    def tick(self, now: float) -> None:
        """What is due without a packet: silence while nothing is said, what is lost, reports."""
        self._out.tick(now)
        self._room = AT_ONCE
        self._deliver(now)
        if self._reports.due(now):
            self._report(goodbye=False)

    def change(self, codec: Codec, payload_type: int, keys: KeyFormat | None) -> None:
        """What the streams carry from now on. They themselves go on, ours with its SSRC and timestamps."""
        if codec is not self.codec:
            self._hear_out()
            self.codec, self._decode = codec, codec.decoder()
            self._change_source(self._remote)
        self._type, self._keys_type = payload_type, keys.payload_type if keys else None
        self._out.change(codec, payload_type, keys)

    def hold(self, *, sends: bool, hears: bool) -> None:
        """Whether sound is sent and heard from now on. While none is heard no time passes; keys and reports go on."""
        self._out.hold(sends=sends)
        if hears == self._deaf:
            self._deaf, self._heard_at = not hears, self._clock()
            self._change_source(None)

    @property
    def sends(self) -> bool:
        """Whether sound is sent, or dropped as on hold."""
        return self._out.on

    def close(self) -> None:
        """Tell the peer that nothing follows. What it still sends is not heard."""
        self._report(goodbye=True)
        self.on_sound, self._on_key = None, _unpressed  # Who listened knows us.

    def _report(self, *, goodbye: bool) -> None:
        now, out = self._clock(), self._out
        sender = None
        if out.packets:
            sender = rtcp.SenderInfo(rtcp.ntp(time.time()), out.timestamp(now), out.packets, out.bytes)
        remote = self._remote
        of = () if remote is None else (self._reports.of(remote, self._buffer, self.codec.clock, now),)
        self._wire.send_rtcp(rtcp.build(self.ssrc, cname(self.ssrc), sender, of, goodbye=goodbye))

    def silent_s(self, now: float) -> float:
        """For so long nothing has come from the peer; 0 on hold."""
        return 0.0 if self._deaf else now - self._heard_at

    def statistics(self) -> Statistics:
        counts, before, reports = self._buffer.counts, self._before, self._reports
        rtt_ms = None if reports.rtt_s is None else round(1000 * reports.rtt_s, 1)
        return Statistics(
            before.received + counts.received, before.lost + counts.lost, before.late + counts.late, self._invalid,
            self._out.packets,
            round(1000 * self._buffer.jitter, 1), round(1000 * self._buffer.wait_s, 1), rtt_ms, reports.remote_lost,
        )  # fmt: skip


def _unpressed(key: str) -> None:
    """Keys that nobody has asked for."""
