"""One call's media: what is said arrives as sound, nothing said is silence, and reports tell how it fares."""

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.support.sinks import Media
from voicepipe.audio import RATE, Pcm, dbfs
from voicepipe.rtp import rtcp
from voicepipe.rtp.codec import CODECS, OPUS, PCMU, Codec
from voicepipe.rtp.jitter import MOST_WAITING
from voicepipe.rtp.packet import RtpPacket, is_rtcp
from voicepipe.rtp.rtp_sender import PacketSink
from voicepipe.rtp.rtp_session import AT_ONCE, RtpSession
from voicepipe.rtp.telephone_events import KeyFormat

FRAME_S = 0.020


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Wire:
    """Keeps what is sent, with the time."""

    clock: Clock
    rtp: list[tuple[float, RtpPacket]] = field(default_factory=list)
    rtcp: list[bytes] = field(default_factory=list)

    def deliver_to(self, sink: PacketSink) -> None: ...

    def send_rtp(self, packet: bytes) -> None:
        self.rtp.append((self.clock.now, RtpPacket.parse(packet)))

    def send_rtcp(self, packet: bytes) -> None:
        self.rtcp.append(packet)


class End:
    """One end of a call."""

    def __init__(self, codec: Codec, clock: Clock) -> None:
        self.wire = Wire(clock)
        self.media = Media()
        self.heard, self.keys = self.media.heard, self.media.keys
        self.session = RtpSession(codec, 96, self.wire, self.media, clock)
        self.session.change(codec, 96, KeyFormat(101, codec.clock))
        self.session.listened = True

    @property
    def sound(self) -> Pcm:
        return np.concatenate([pcm for pcm, _, _ in self.heard])


def speech(rate: int, seconds: float = 1.0) -> Pcm:
    return (9000 * np.sin(2 * np.pi * 300 * np.arange(int(rate * seconds)) / rate)).astype(np.int16)


def talk(near: End, far: End, clock: Clock, pcm: Pcm, lost: frozenset[int] = frozenset()) -> None:
    """`near` says `pcm` in packets; those numbered in `lost` do not arrive."""
    for n, block in enumerate(pcm.reshape(-1, near.session.codec.out_rate // 50)):
        near.session.send(block)
        if n not in lost:
            far.session.datagram(bytes(near.wire.rtp[-1][1]), clock.now)
        clock.now += FRAME_S
        far.session.tick(clock.now)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_what_is_said_is_heard_at_once(codec: Codec) -> None:
    clock = Clock()
    near, far = End(codec, clock), End(codec, clock)
    talk(near, far, clock, speech(codec.out_rate))
    assert far.sound.size == pytest.approx(RATE, abs=RATE // 50)
    assert dbfs(far.sound[RATE // 10 :]) == pytest.approx(dbfs(speech(RATE)), abs=1.5)
    assert [arrived for _, arrived, _ in far.heard] == [when for when, _ in near.wire.rtp]
    assert not any(filled for _, _, filled in far.heard)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_lost_packet_is_concealed_and_nothing_shifts(codec: Codec) -> None:
    clock = Clock()
    near, far = End(codec, clock), End(codec, clock)
    talk(near, far, clock, speech(codec.out_rate), lost=frozenset({20, 30, 31}))
    assert sum(filled for _, _, filled in far.heard) == 3
    assert far.sound.size == pytest.approx(RATE, abs=RATE // 50)
    made_up = next(pcm for pcm, _, filled in far.heard if filled)
    assert made_up.size == 320 and dbfs(made_up) > -40
    assert far.session.statistics().lost == 3


def test_reports_tell_losses_jitter_and_the_way_there_and_back() -> None:
    clock = Clock()
    near, far = End(OPUS, clock), End(OPUS, clock)
    for _ in range(12):
        talk(near, far, clock, speech(24_000), lost=frozenset({7}))
        for _ in range(50):
            near.session.tick(clock.now)
    assert near.wire.rtcp, "every five seconds or so"
    near.session.close()
    said = rtcp.parse(near.wire.rtcp[-1])
    assert said.sender and said.sender.packets == len(near.wire.rtp)
    for report in near.wire.rtcp:
        assert is_rtcp(report)
        far.session.datagram(report, clock.now)
    far.session.close()
    for report in far.wire.rtcp:
        near.session.datagram(report, clock.now)
    block = rtcp.parse(far.wire.rtcp[-1]).reports[0]
    assert block.ssrc == near.session.ssrc and block.lost > 0
    statistics = near.session.statistics()
    assert statistics.rtt_ms is not None and 0 <= statistics.rtt_ms < 2000
    assert any(report.reports[0].fraction_lost > 0 for report in map(rtcp.parse, far.wire.rtcp))


def test_what_is_no_packet_of_the_call_is_counted() -> None:
    clock = Clock()
    end = End(OPUS, clock)
    rng = random.Random(1)
    for _ in range(500):
        end.session.datagram(rng.randbytes(rng.randrange(0, 80)), clock.now)
    end.session.datagram(bytes(RtpPacket(13, 1, 1, 1, b"x")), clock.now)
    end.session.datagram(bytes(RtpPacket(96, 1, 1, 1, b"")), clock.now)
    assert end.session.statistics().invalid > 400


def test_a_source_that_changes_is_heard() -> None:
    clock = Clock()
    far = End(PCMU, clock)
    for _ in range(2):
        near = End(PCMU, clock)
        talk(near, far, clock, speech(8000, 0.2), lost=frozenset({3}))
        far.session.close()
        block = rtcp.parse(far.wire.rtcp[-1]).reports[0]
        assert (block.ssrc, block.lost) == (near.session.ssrc, 1)
        far.session._listener, far.session.listened = far.media, True
    assert far.sound.size == pytest.approx(0.4 * RATE, abs=RATE // 25)
    statistics = far.session.statistics()
    assert (statistics.received, statistics.lost) == (18, 2)


def test_masses_of_sound_are_dropped_before_they_are_decoded() -> None:
    clock = Clock()
    near, far = End(OPUS, clock), End(OPUS, clock)
    for block in speech(24_000, 10).reshape(-1, 480):
        near.session.send(block)
        far.session.datagram(bytes(near.wire.rtp[-1][1]), clock.now)
    assert far.sound.size == pytest.approx(AT_ONCE * RATE // 50, abs=RATE // 25)
    for _ in range(50):
        far.session.tick(clock.now)
    assert far.sound.size == pytest.approx(5 * RATE, abs=RATE // 25)
    assert far.session.statistics().invalid == pytest.approx(250, abs=3)


def test_masses_behind_a_packet_that_is_kept_back_are_not_decoded_in_one_go() -> None:
    clock = Clock()
    far = End(PCMU, clock)
    packets = [bytes(RtpPacket(96, n, 0, 5, bytes(160))) for n in range(2900) if n != 5]
    for packet in packets:
        far.session.datagram(packet, clock.now)
    clock.now += 0.2
    each = []
    for _ in range(30):
        before = len(far.heard)
        far.session.tick(clock.now)
        each.append(len(far.heard) - before)
    assert each[0] == AT_ONCE and max(each) <= AT_ONCE
    assert len(far.heard) <= 5 + MOST_WAITING + 1
    statistics = far.session.statistics()
    assert statistics.received + statistics.invalid == len(packets)


def test_a_broken_packet_after_a_lost_one_is_concealed_as_well() -> None:
    clock = Clock()
    near, far = End(OPUS, clock), End(OPUS, clock)
    talk(near, far, clock, speech(24_000, 0.2))
    near.session.send(speech(24_000, FRAME_S))
    clock.now += FRAME_S
    near.session.send(speech(24_000, FRAME_S))
    broken = near.wire.rtp[-1][1]._replace(payload=b"\xff\xff\xff")
    far.session.datagram(bytes(broken), clock.now)
    for _ in range(5):
        clock.now += FRAME_S
        far.session.tick(clock.now)
    assert far.sound.size == pytest.approx(0.24 * RATE, abs=2)
