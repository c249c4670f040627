"""What goes out: speech at once, silence where none comes, and timestamps that keep to the time."""

import random
from itertools import pairwise

import numpy as np
import pytest

from tests.rtp.test_rtp_session import Clock, End, speech
from voicepipe.audio import RATE, dbfs
from voicepipe.rtp.codec import CODECS, OPUS, PCMU, Codec

FRAME_S = 0.020


def test_silence_fills_the_time_in_which_nothing_is_said() -> None:
    clock = Clock()
    near = End(OPUS, clock)
    for _ in range(100):
        near.session.tick(clock.now)
        clock.now += FRAME_S
    stamps = [packet.timestamp for _, packet in near.wire.rtp]
    assert len(stamps) == 100
    assert {(b - a) % 2**32 for a, b in pairwise(stamps)} == {960}
    assert [packet.marker for _, packet in near.wire.rtp] == [True] + [False] * 99


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_speech_after_a_silence_sounds_as_if_all_of_it_had_been_coded(codec: Codec) -> None:
    """Packets of silence that stay the same are sent again without the coder."""
    clock = Clock()
    near, far = End(codec, clock), End(codec, clock)
    encode, decode = codec.encoder(), codec.decoder()
    said, expected = speech(codec.out_rate, 0.4).reshape(-1, codec.out_rate // 50), []
    for pcm in [*said, *[None] * 100, *said]:
        if pcm is None:
            clock.now += FRAME_S
            near.session.tick(clock.now + 0.001)
        else:
            clock.now += FRAME_S
            near.session.send(pcm)
        expected.append(decode(encode(np.zeros_like(said[0]) if pcm is None else pcm)))
        far.session.datagram(bytes(near.wire.rtp[-1][1]), clock.now)
        far.session.tick(clock.now)
    again = -len(said) * RATE // 50
    difference = far.sound[again:].astype(float) - np.concatenate(expected)[again:]
    assert dbfs(difference.astype(np.int16)) < dbfs(said[0]) - 30, "less than what the coder itself adds"


def test_speech_goes_out_at_once_and_timestamps_keep_to_the_time() -> None:
    """Ticks and playout have clocks of their own: replies begin at any time between two ticks, dozens in a call."""
    clock, rng, began = Clock(), random.Random(1), 100.0
    near = End(OPUS, clock)
    block = speech(24_000, FRAME_S)
    events = [(began + n * FRAME_S, False) for n in range(3000)]
    for reply in range(50):
        start = began + 0.5 + reply + rng.uniform(0, 0.5)
        events += [(start + n * FRAME_S + rng.uniform(0, 0.003), True) for n in range(20)]
    for when, speaks in sorted(events):
        clock.now = when
        if speaks:
            near.session.send(block)
            assert near.wire.rtp[-1][0] == when
        else:
            near.session.tick(when)
    stamps = [(when, packet.timestamp) for when, packet in near.wire.rtp]
    ahead = [(stamp - stamps[0][1]) % 2**32 / 48_000 - (when - began) for when, stamp in stamps]
    assert -0.025 < min(ahead) and max(ahead) < 0.045
    said = [when for when, speaks in events if speaks]
    for first, last in zip(said[::20], said[19::20], strict=True):
        within = [stamp for when, stamp in stamps if first <= when <= last]
        assert len(within) == 20, "no silence within a reply"
        assert {(b - a) % 2**32 for a, b in pairwise(within)} == {960}


def test_after_a_stall_timestamps_say_how_long_it_was() -> None:
    clock = Clock()
    near = End(PCMU, clock)
    near.session.tick(clock.now)
    clock.now += 1.0
    near.session.tick(clock.now)
    (_, first), (_, second) = near.wire.rtp
    assert (second.timestamp - first.timestamp) % 2**32 == pytest.approx(8000, abs=1)
    assert second.marker
