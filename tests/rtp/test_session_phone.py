"""What phones add to a call's media: keys in place of sound, other codecs on the way, hold."""

from itertools import pairwise

import numpy as np
import pytest

from tests.rtp.test_rtp_session import FRAME_S, Clock, End, speech, talk
from tests.support.sinks import Media
from voicepipe.audio import RATE, dbfs
from voicepipe.rtp.codec import COMFORT_NOISE, G722, OPUS, PCMA, PCMU, Codec
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.rtp_session import RtpSession
from voicepipe.rtp.telephone_events import KEYS, KeyFormat, TelephoneEvent


def run(near: End, far: End, clock: Clock, packets: int, *, speaks: bool, lost: frozenset[int] = frozenset()) -> None:
    """Both tick; `near` speaks if it `speaks`. Of what it sends, packets numbered in `lost` do not arrive."""
    block = speech(near.session.codec.out_rate, FRAME_S)
    for n in range(packets):
        before = len(near.wire.rtp)
        if speaks:
            near.session.send(block)
        near.session.tick(clock.now)
        for _, packet in near.wire.rtp[before:]:
            if n not in lost:
                far.session.datagram(bytes(packet), clock.now)
        clock.now += FRAME_S
        far.session.tick(clock.now)


@pytest.mark.parametrize("codec", [PCMU, G722, OPUS], ids=lambda codec: codec.name)
@pytest.mark.parametrize("speaks", [False, True])
def test_keys_take_the_place_of_sound_and_time_goes_on(codec: Codec, speaks: bool) -> None:
    clock = Clock()
    near, far = End(codec, clock), End(codec, clock)
    run(near, far, clock, 20, speaks=speaks)
    near.session.press(KEYS)
    run(near, far, clock, 16 * 14 + 20, speaks=speaks)
    assert "".join(far.keys) == KEYS
    sent = [packet for _, packet in near.wire.rtp]
    assert len(sent) == 16 * 14 + 40, "a packet each 20 ms, whatever it carries"
    assert {(b.seq - a.seq) % 2**16 for a, b in pairwise(sent)} == {1}
    sound = [(when, packet.timestamp) for when, packet in near.wire.rtp if packet.payload_type == 96]
    for when, timestamp in sound:
        assert (timestamp - sound[0][1]) % 2**32 == round((when - sound[0][0]) * codec.clock)
    assert far.sound.size / RATE == pytest.approx(len(sent) * FRAME_S, abs=0.08)
    assert far.session.statistics().lost == far.session.statistics().invalid == 0


def test_what_a_key_takes_the_place_of_is_silence() -> None:
    clock = Clock()
    near, far = End(PCMU, clock), End(PCMU, clock)
    run(near, far, clock, 20, speaks=True)
    near.session.press("5")
    run(near, far, clock, 40, speaks=True)
    filled = np.concatenate([pcm for pcm, _, made_up in far.heard if made_up])
    assert not filled.any(), "nothing is concealed"
    assert filled.size / RATE == pytest.approx(0.20, abs=0.03)
    assert far.keys == ["5"]


def test_a_key_is_heard_at_once_and_once_whatever_is_lost() -> None:
    clock = Clock()
    near, far = End(PCMA, clock), End(PCMA, clock)
    run(near, far, clock, 10, speaks=True)
    near.session.press("#")
    run(near, far, clock, 4, speaks=True, lost=frozenset({0, 1}))
    assert far.keys == ["#"]
    run(near, far, clock, 40, speaks=True, lost=frozenset({1, 2}))
    assert far.keys == ["#"]
    assert far.session.statistics().lost == 4
    assert far.sound.size / RATE == pytest.approx(54 * FRAME_S, abs=0.05)


def test_a_key_needs_a_peer_that_takes_it() -> None:
    clock = Clock()
    end = End(PCMU, clock)
    with pytest.raises(ValueError, match="is no key: keys are"):
        end.session.press("x")
    end.session.change(PCMU, 0, None)
    with pytest.raises(ValueError, match="takes no keys"):
        end.session.press("1")


def test_keys_that_wait_are_sent_by_the_clock_that_is_agreed() -> None:
    clock = Clock()
    near, far = End(OPUS, clock), End(OPUS, clock)
    run(near, far, clock, 5, speaks=True)
    near.session.change(OPUS, 96, KeyFormat(102, 8000))
    far.session.change(OPUS, 96, KeyFormat(102, 8000))
    near.session.press("1")
    near.session.change(OPUS, 96, KeyFormat(101, 8000))
    far.session.change(OPUS, 96, KeyFormat(101, 8000))
    run(near, far, clock, 20, speaks=True)
    assert far.keys == ["1"]
    events = [TelephoneEvent.parse(packet.payload) for _, packet in near.wire.rtp if packet.payload_type == 101]
    assert max(event.duration for event in events) == 1280, "160 ms at 8 kHz"


def test_a_cut_off_event_is_counted() -> None:
    clock = Clock()
    end = End(PCMU, clock)
    end.session.datagram(bytes(RtpPacket(101, 1, 1, 1, b"\1\2")), clock.now)
    assert end.session.statistics().invalid == 1 and not end.keys


def test_comfort_noise_is_silence() -> None:
    clock = Clock()
    near, far = End(PCMU, clock), End(PCMU, clock)
    run(near, far, clock, 10, speaks=True)
    last = near.wire.rtp[-1][1]
    noise = RtpPacket(COMFORT_NOISE, (last.seq + 1) % 2**16, (last.timestamp + 160) % 2**32, last.ssrc, b"\x40")
    far.session.datagram(bytes(noise), clock.now)
    for _ in range(20):
        clock.now += FRAME_S
        far.session.tick(clock.now)
    silence = [pcm for pcm, _, filled in far.heard if filled]
    assert 0.3 < sum(pcm.size for pcm in silence) / RATE < 0.45 and not np.concatenate(silence).any()
    statistics = far.session.statistics()
    assert (statistics.invalid, statistics.lost) == (0, 0)


@pytest.mark.parametrize(("before", "after"), [(PCMU, PCMA), (OPUS, G722), (PCMU, OPUS)])
def test_another_codec_on_the_same_streams(before: Codec, after: Codec) -> None:
    clock = Clock()
    near, far = End(before, clock), End(before, clock)
    talk(near, far, clock, speech(before.out_rate))
    for end in (near, far):
        end.session.change(after, 97, KeyFormat(102, after.clock))
    talk(near, far, clock, speech(after.out_rate))
    assert far.sound.size == pytest.approx(2 * RATE, abs=RATE // 25)
    assert dbfs(far.sound[-RATE // 2 :]) == pytest.approx(dbfs(speech(RATE)), abs=1.5)
    sent = [packet for _, packet in near.wire.rtp]
    assert {packet.ssrc for packet in sent} == {near.session.ssrc}
    assert {(b.seq - a.seq) % 2**16 for a, b in pairwise(sent)} == {1}
    assert {(b.timestamp - a.timestamp) % 2**32 for a, b in pairwise(sent)} <= {before.clock // 50, after.clock // 50}
    assert (far.session.statistics().received, far.session.statistics().lost) == (100, 0)


def test_a_refresh_that_changes_nothing_is_not_heard() -> None:
    clock = Clock()
    near, far = End(PCMU, clock), End(PCMU, clock)
    for _ in range(3):
        talk(near, far, clock, speech(8000, 0.2))
        far.session.change(PCMU, 96, KeyFormat(101, 8000))
        far.session.hold(sends=True, hears=True)
    assert far.sound.size == 0.6 * RATE
    assert not any(filled for _, _, filled in far.heard)


def test_on_hold_time_stands_still_and_afterwards_there_is_sound() -> None:
    clock = Clock()
    near, far = End(PCMU, clock), End(PCMU, clock)
    run(near, far, clock, 50, speaks=True)
    far.session.hold(sends=False, hears=False)
    sent = len(far.wire.rtp)
    run(near, far, clock, 100, speaks=True)
    assert len(far.wire.rtp) == sent, "nothing is sent"
    assert far.sound.size / RATE == pytest.approx(1, abs=0.03)
    far.session.send(speech(8000, FRAME_S))
    assert len(far.wire.rtp) == sent
    far.session.hold(sends=True, hears=True)
    run(near, far, clock, 50, speaks=True)
    assert far.sound.size / RATE == pytest.approx(2, abs=0.06)
    assert dbfs(far.sound[-RATE // 2 :]) > -20
    assert far.session.statistics().lost == 0
    (before, first), (after, second) = far.wire.rtp[sent - 1], far.wire.rtp[sent]
    assert second.marker, "the first after a silence in which nothing was sent"
    assert (second.timestamp - first.timestamp) % 2**32 == pytest.approx((after - before) * 8000, abs=2)


def test_a_hold_before_the_first_packet_and_a_long_one() -> None:
    clock = Clock()
    near, far = End(PCMU, clock), End(PCMU, clock)
    far.session.hold(sends=True, hears=False)
    run(near, far, clock, 1000, speaks=False)
    assert len(far.wire.rtp) == 1000, "music or silence may still be sent"
    far.session.hold(sends=True, hears=True)
    run(near, far, clock, 50, speaks=True)
    assert far.sound.size / RATE == pytest.approx(1, abs=0.06)
    assert far.session.statistics().invalid == 0


def test_how_long_the_peer_has_been_silent() -> None:
    clock = Clock()
    near, far = End(PCMU, clock), End(PCMU, clock)
    clock.now += 60  # It rings.
    far.session.begin()
    assert far.session.silent_s(clock.now) == 0
    clock.now += 5
    far.session.tick(clock.now)
    far.session.datagram(b"no packet", clock.now)
    far.session.datagram(bytes(RtpPacket(77, 1, 1, 1, b"x")), clock.now)
    assert far.session.silent_s(clock.now) == 5
    run(near, far, clock, 2, speaks=False)
    assert far.session.silent_s(clock.now) == pytest.approx(FRAME_S)
    clock.now += 5
    near.session.close()
    far.session.datagram(near.wire.rtcp[-1], clock.now)
    assert far.session.silent_s(clock.now) == 0, "reports go on where there is no sound"


def test_nobody_is_silent_on_hold_nor_at_once_after_it() -> None:
    clock = Clock()
    end = End(PCMU, clock)
    end.session.hold(sends=False, hears=False)
    clock.now += 600
    assert end.session.silent_s(clock.now) == 0
    end.session.hold(sends=True, hears=True)
    clock.now += 1
    assert end.session.silent_s(clock.now) == 1
    end.session.hold(sends=True, hears=True)
    assert end.session.silent_s(clock.now) == 1, "a refresh is no sound"


def test_after_the_end_nobody_is_told() -> None:
    clock = Clock()
    near, far = End(PCMU, clock), End(PCMU, clock)
    run(near, far, clock, 5, speaks=True)
    far.session.close()
    heard = len(far.heard)
    near.session.press("1")
    run(near, far, clock, 20, speaks=True)
    assert (len(far.heard), far.keys) == (heard, [])


def test_who_asks_for_no_keys_gets_none() -> None:
    clock = Clock()
    near, far = End(PCMU, clock), End(PCMU, clock)
    deaf = RtpSession(PCMU, 96, far.wire, Media(), clock)
    near.session.press("1")
    near.session.tick(clock.now)
    deaf.datagram(bytes(near.wire.rtp[-1][1]), clock.now)
    assert deaf.statistics().invalid == 1
