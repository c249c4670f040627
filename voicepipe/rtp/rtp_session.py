"""The media of a call, both ways: packets in, sound out, and the reverse. Synchronous, without I/O."""

import random
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Protocol

import numpy as np

from voicepipe.audio import RATE, Pcm
from voicepipe.rtp import rtcp
from voicepipe.rtp.codec import NOISE, Codec, Format, Formats, NonAudio
from voicepipe.rtp.jitter import RESTART, HeardPacket, JitterBuffer, LostPacket, PacketCounts, PlayoutItem, SilentSpan
from voicepipe.rtp.packet import PacketError, RtpPacket, is_rtcp, newer_by
from voicepipe.rtp.rtp_sender import PacketWire, RtpSender
from voicepipe.rtp.telephone_events import KeyFormat, KeyReceiver

AHEAD_S = 5.0
"""Seconds: sound that is further ahead of real time is dropped before it is decoded; what a network held up only
catches up."""
AT_ONCE = 10
"""Packets of sound, 200 ms, that are decoded and processed between two ticks: what a network has held up for longer
follows with the next ticks, so that other calls have their turns."""

MOST_BEFORE = 50
"""Packets, 1 s, of a source that was replaced."""
REPORT_S = 5.0
"""Seconds between reports (RFC 3550, 6.2), at random from half to one and a half times that."""


@dataclass(frozen=True, slots=True)
class MediaStatistics:
    """Statistics of a call's media. Counts are packets since it began."""

    received: int
    lost: int
    late: int
    invalid: int
    """Datagrams that were no packet of this stream, or came in masses."""
    sent: int
    jitter_ms: float
    wait_ms: float
    """How long a missing packet is waited for now."""
    rtt_ms: float | None
    """Round trip by the peer's last report; None before there was one."""
    remote_lost: float
    """Share of our packets that the peer missed lately, 0 to 1."""


def cname(ssrc: int) -> str:
    """The name of a stream's source (RFC 7022): as short-lived as the stream."""
    return f"{ssrc:08x}"


class MediaListener(Protocol):
    """Receives the peer's sound and keys. Implemented by `RtpLine`."""

    def sound(self, pcm: Pcm, arrived: float, filled: bool) -> None:
        """The next sound: int16[n] at 16 kHz; `arrived`: the monotonic second at which the packet came that completed
        it; `filled`: it was made up for one that was lost."""

    def key(self, key: str) -> None:
        """The peer pressed one of `telephone_events.KEYS`."""


class RtcpReports:
    """The RTCP reports of one call, both ways (RFC 3550, 6.4)."""

    def __init__(self) -> None:
        self.rtt_s: float | None = None
        """Round trip by the peer's last report; None before there was one."""
        self.remote_lost = 0.0
        """Share of our packets that the peer missed lately, 0 to 1."""
        self._at = 0.0
        self.restart()

    def restart(self) -> None:
        """The peer began a new stream."""
        self._last_sr, self._last_sr_at = 0, 0.0
        self._reported = 0, 0
        """Packets expected and received by the last report."""

    def due(self, now: float) -> bool:
        """Whether a report is to be sent now; called every 20 ms."""
        if now < self._at:
            return False
        first = not self._at
        self._at = now + REPORT_S * (0.5 + random.random())
        return not first

    def of(self, remote: int, buffer: JitterBuffer, clock: int, now: float) -> rtcp.RtcpReport:
        """Our report on the stream `remote`, in its RTP clock's Hz."""
        # What came late was not lost (RFC 3550, 6.4.1): it only was of no use.
        expected, received = buffer.expected, buffer.counts.received
        due, lost = expected - self._reported[0], expected - received - (self._reported[0] - self._reported[1])
        self._reported = expected, received
        fraction = lost / due if lost > 0 and due > 0 else 0.0
        since = now - self._last_sr_at if self._last_sr else 0.0
        jitter = int(buffer.jitter * clock)
        return rtcp.RtcpReport(remote, fraction, expected - received, buffer.highest_seq, jitter, self._last_sr, since)

    def heard(self, report: rtcp.Rtcp, arrived: float, *, ours: int, remote: int | None) -> None:
        """The peer has reported on our stream `ours`."""
        if report.sender and report.ssrc == remote:
            self._last_sr, self._last_sr_at = rtcp.middle(report.sender.ntp), arrived
        for block in report.reports:
            if block.ssrc == ours:
                self.remote_lost = block.fraction_lost
                if block.last_sr:
                    round_trip = (rtcp.middle(rtcp.ntp(time.time())) - block.last_sr) % 2**32 / 65536
                    self.rtt_s = max(0.0, round_trip - block.since_last_sr)


class RtpSession:
    """The media of one call, both ways; it does no I/O itself. `listener` gets the caller's sound in order, once
    `listened` is set; until then it waits, 10 s at most. It also gets the keys that they press, once `change` has told
    how they are sent. `send` and `tick` are to be called every 20 ms.

    We send in one codec, `codec`, by `payload_type`. The peer may send in it and in all that `may_send` names, and may
    change from one to another with any packet."""

    def __init__(
        self,
        codec: Codec,
        payload_type: int,
        wire: PacketWire,
        listener: MediaListener,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.listened = False
        """The caller's sound is passed to `listener`."""
        self.codec = codec
        """The codec in which we send."""
        self.heard_codec = codec
        """The codec of the peer's latest sound."""
        self._formats: dict[int, Format] = {**NOISE, payload_type: codec}
        """What the peer may send, by payload type."""
        self._wire = wire
        self._listener: MediaListener | None = listener
        self._clock = clock
        self._out = RtpSender(codec, payload_type, wire, clock)
        self.ssrc = self._out.ssrc
        self._buffer, self._decode = JitterBuffer(codec.clock), codec.decoder()
        self._keys = KeyReceiver()
        self._reports = RtcpReports()
        self._remote: int | None = None
        """The peer's SSRC."""
        self._deaf = False
        """On hold: what comes is not the caller."""
        self._heard_at = clock()
        """When the peer's last packet came, or from when on one is missed."""
        self._invalid = 0
        self.hasty = 0
        """Packets that came faster than sound is made."""
        self._began: float | None = None
        """When the first packet came."""
        self._heard_s = 0.0
        self._room = AT_ONCE
        """Further packets of sound that may be processed before the next tick."""
        self._before = PacketCounts()
        """Sources that the peer does not use any more."""
        wire.deliver_to(self)

    def begin(self) -> None:
        """The call is accepted: from now on the peer's packets are expected."""
        self._heard_at = self._clock()

    # --- in

    def datagram(self, data: bytes, arrived: float) -> None:
        """As `PacketSink.datagram`."""
        try:
            if is_rtcp(data):
                self._reports.heard(rtcp.parse(data), arrived, ours=self.ssrc, remote=self._remote)
                self._heard_at = arrived
            else:
                self._hear(RtpPacket.parse(data), arrived)
        except PacketError:
            self._invalid += 1

    def _hear(self, packet: RtpPacket, arrived: float) -> None:
        form = self._formats.get(packet.payload_type)
        if form is None:
            self._invalid += 1
            return
        self._began = arrived if self._began is None else self._began
        if self._heard_s + self._buffer.waiting_s > arrived - self._began + AHEAD_S:
            self._invalid += 1
            self.hasty += 1
            return
        self._heard_at = arrived
        if form is NonAudio.KEYS and (key := self._keys.heard(packet)) and self._listener:
            self._listener.key(key)
        if self._deaf:
            return
        if isinstance(form, Codec):
            self._hear_sound(form, packet, arrived)
        elif packet.ssrc == self._remote:
            self._buffer.push(packet, arrived, sound=False)
            self._deliver(arrived)

    def _hear_sound(self, codec: Codec, packet: RtpPacket, arrived: float) -> None:
        if packet.ssrc != self._remote:
            self._change_source(packet.ssrc, codec)
        elif codec.clock != self.heard_codec.clock:
            if self._buffer.counts.received and -RESTART < self._ahead(packet) <= 0:
                self._buffer.counts.late += 1  # Overtaken by the first packet in another codec.
                return
            self._change_source(packet.ssrc, codec)
        self._buffer.push(packet, arrived, silent=len(packet.payload) <= codec.silence)
        self._deliver(arrived)

    def _ahead(self, packet: RtpPacket) -> int:
        return newer_by(packet.seq, self._buffer.highest_seq & 0xFFFF, 16)

    def _hear_in(self, codec: Codec) -> None:
        if codec is not self.heard_codec:
            self.heard_codec, self._decode = codec, codec.decoder()

    @property
    def behind(self) -> bool:
        """More has come than is processed before the next tick."""
        return self._room == 0

    def _hear_out(self) -> None:
        """Process what has come before something else begins: 1 s of it at most."""
        room, self._room = self._room, MOST_BEFORE
        self._deliver(self._clock())
        self._room = room

    def _change_source(self, ssrc: int | None, codec: Codec) -> None:
        """The peer began a new stream, or changed to a codec with another clock, by which its timestamps count from now
        on."""
        self._hear_out()
        old = self._buffer.counts
        self._before = PacketCounts(*(a + b for a, b in zip(astuple(self._before), astuple(old), strict=True)))
        self._remote, self._buffer = ssrc, JitterBuffer(codec.clock)
        self._hear_in(codec)
        self._reports.restart()

    def _deliver(self, now: float) -> None:
        while self.listened and self._listener and self._room and (item := self._buffer.pop(now)):
            self._room -= 1
            pcm = self._sound(item)
            self._heard_s += pcm.size / RATE
            if isinstance(item, HeardPacket):
                self._listener.sound(pcm, item.arrived, False)
            else:
                self._listener.sound(pcm, now, True)

    def _sound(self, item: PlayoutItem) -> Pcm:
        samples = RATE // 50 if isinstance(item, HeardPacket) else item.span * RATE // self.heard_codec.clock
        try:
            match item:
                case HeardPacket(packet=packet):
                    if isinstance(codec := self._formats.get(packet.payload_type), Codec):
                        self._hear_in(codec)
                    return self._decode(packet.payload)
                case LostPacket(following=bytes(following)):
                    return self._decode.recover(following, samples)
                case SilentSpan():
                    return np.zeros(samples, np.int16)
        except ValueError:
            self._invalid += 1
        return self._decode.conceal(samples)

    # --- out

    def send(self, pcm: Pcm) -> None:
        """20 ms of speech at once: int16[n] at the codec's `out_rate`. Under a key or on hold it is not sent."""
        self._out.send(pcm)

    @property
    def takes_keys(self) -> bool:
        """Whether the peer takes keys (`telephone_events.KEYS`), as its SDP says."""
        return self._out.takes_keys

    @property
    def is_pressing(self) -> bool:
        """Whether keys wait to be sent, or one is down."""
        return self._out.is_pressing

    def press(self, keys: str) -> None:
        """Send keys (`telephone_events.KEYS`) one after another, instead of speech meanwhile; on hold they wait. Raises
        ValueError, and sends none: the peer takes none, not all are keys, or too many wait already."""
        self._out.press(keys)

    def tick(self, now: float) -> None:
        """Do what is due without a packet: send silence while nothing is said, conceal losses, send reports."""
        self._out.tick(now)
        self._room = AT_ONCE
        self._deliver(now)
        if self._reports.due(now):
            self._report(goodbye=False)

    def change(self, codec: Codec, payload_type: int, keys: KeyFormat | None) -> None:
        """Send in this codec from now on; it is received as well. The streams go on, ours with its SSRC and
        timestamps."""
        self.may_send({payload_type: codec, **({keys.payload_type: NonAudio.KEYS} if keys else {})})
        self.codec = codec
        self._out.change(codec, payload_type, keys)

    def may_send(self, formats: Formats) -> None:
        """What the peer may send from now on, by payload type, in addition to all earlier formats: packets of the last
        agreement may still be on their way, and a payload type means one thing as long as a session lasts (RFC 3264,
        8.3.2). Where it does not, the latest meaning counts."""
        if any(self._formats.get(number, form) is not form for number, form in formats.items()):
            self._hear_out()
        self._formats.update(formats)

    def hold(self, *, sends: bool, hears: bool) -> None:
        """Whether sound is sent and received from now on. While none is received no time passes; keys and reports go
        on."""
        self._out.hold(sends=sends)
        if hears == self._deaf:
            self._deaf, self._heard_at = not hears, self._clock()
            self._change_source(None, self.heard_codec)

    @property
    def sends(self) -> bool:
        """Whether sound is sent, or dropped as on hold."""
        return self._out.on

    def close(self) -> None:
        """Tell the peer that nothing follows, by RTCP. What it still sends is dropped."""
        self._report(goodbye=True)
        self.listened, self._listener = False, None  # Who listened knows us.

    def _report(self, *, goodbye: bool) -> None:
        now, out = self._clock(), self._out
        sender = None
        if out.packets:
            sender = rtcp.SenderInfo(rtcp.ntp(time.time()), out.timestamp(now), out.packets, out.bytes)
        remote = self._remote
        of = () if remote is None else (self._reports.of(remote, self._buffer, self.heard_codec.clock, now),)
        self._wire.send_rtcp(rtcp.build(self.ssrc, cname(self.ssrc), sender, of, goodbye=goodbye))

    def silent_s(self, now: float) -> float:
        """Seconds for which nothing has come from the peer; 0 on hold."""
        return 0.0 if self._deaf else now - self._heard_at

    def statistics(self) -> MediaStatistics:
        counts, before, reports = self._buffer.counts, self._before, self._reports
        rtt_ms = None if reports.rtt_s is None else round(1000 * reports.rtt_s, 1)
        return MediaStatistics(
            before.received + counts.received, before.lost + counts.lost, before.late + counts.late, self._invalid,
            self._out.packets,
            round(1000 * self._buffer.jitter, 1), round(1000 * self._buffer.wait_s, 1), rtt_ms, reports.remote_lost,
        )  # fmt: skip
