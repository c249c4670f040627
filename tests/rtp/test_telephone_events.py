"""Each key is told once, whatever the network does to its packets."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.rtp.packet import PacketError, RtpPacket
from voicepipe.rtp.telephone_events import (
    ENDS,
    HELD_S,
    KEYS,
    PAUSE_S,
    WAITING,
    KeyReceiver,
    KeySender,
    TelephoneEvent,
)

CLOCK, STEP = 8000, 160
FIRST = 2**32 - 3 * STEP
"""Timestamps run over within the first key."""


def packets(keys: str, clock: int = CLOCK, durations: int = 0) -> list[RtpPacket]:
    """As a sender of 20 ms packets sends these keys one after another, and nothing between them."""
    sender, out, step = KeySender(clock, durations or clock), list[RtpPacket](), clock // 50
    for key in keys:
        sender.press(key)
    for n in range(3000):
        now = FIRST + n * step
        if sender.wants(now):
            timestamp, payload, first = sender.packet(now)
            out.append(RtpPacket(101, n, timestamp % 2**32, 7, payload, first))
    return out


def heard(told: list[RtpPacket]) -> str:
    receiver = KeyReceiver()
    return "".join(key for packet in told if (key := receiver.heard(packet)))


def test_every_key_is_told_once() -> None:
    assert heard(packets(KEYS)) == KEYS
    assert heard(packets("1122##")) == "1122##"


def test_a_key_is_one_event_that_grows_and_ends_three_times() -> None:
    told = packets("5")
    events = [TelephoneEvent.parse(packet.payload) for packet in told]
    assert {packet.timestamp for packet in told} == {FIRST}
    assert [packet.marker for packet in told] == [True] + [False] * (len(told) - 1)
    assert [event.duration for event in events] == [STEP * n for n in (*range(1, 9), 8, 8)]
    assert [event.ended for event in events] == [False] * 7 + [True] * ENDS
    assert {(event.number, event.volume) for event in events} == {(5, 10)}


def test_durations_count_in_a_clock_of_their_own_and_timestamps_in_the_streams() -> None:
    told = packets("55", 48_000, 8000)
    first = [TelephoneEvent.parse(packet.payload) for packet in told if packet.timestamp == FIRST]
    assert [event.duration for event in first] == [160 * n for n in (*range(1, 9), 8, 8)]
    assert (told[-1].timestamp - FIRST) % 2**32 >= (HELD_S + PAUSE_S) * 48_000
    assert heard(told) == "55"


def test_between_two_keys_none_is_down() -> None:
    told = packets("55")
    starts = [packet for packet in told if packet.marker]
    last = [packet for packet in told if packet.timestamp == FIRST][-1]
    assert len(starts) == 2
    pause = (starts[1].seq - last.seq - 1) * STEP / CLOCK
    assert pause >= PAUSE_S
    assert all(a.timestamp <= b.timestamp or a.timestamp == FIRST for a, b in pairwise(told))


@pytest.mark.parametrize("seed", range(20))
def test_one_packet_of_each_key_is_enough(seed: int) -> None:
    rng, keys = random.Random(seed), "1100*#"
    told = packets(keys)
    stamps = list(dict.fromkeys(packet.timestamp for packet in told))
    survivors = [rng.choice([packet for packet in told if packet.timestamp == stamp]) for stamp in stamps]
    assert heard(survivors) == keys


@given(st.randoms(use_true_random=False), st.text(KEYS, min_size=1, max_size=5))
def test_losses_and_copies_add_no_key(rng: random.Random, keys: str) -> None:
    told = [packet for packet in packets(keys) for _ in range(rng.randrange(3))]
    stamps = {packet.timestamp for packet in told}
    assert len(heard(told)) == len(stamps)


def test_packets_that_come_late_tell_no_key_again() -> None:
    told = packets("12")
    assert heard([*told, told[0], told[5]]) == "12"


def test_a_key_that_is_held_for_longer_than_the_duration_can_say_is_one() -> None:
    ends = [RtpPacket(101, n, n * 0xFFFF, 7, bytes(TelephoneEvent(3, n == 2, 0xFFFF))) for n in range(3)]
    assert heard(ends) == "3"


def test_other_events_are_no_keys() -> None:
    flash = [RtpPacket(101, n, n * 800, 7, bytes(TelephoneEvent(16 + n, True, 800))) for n in range(100)]
    assert heard(flash) == ""


def test_a_source_that_begins_anew_is_heard() -> None:
    told = packets("7")
    again = [packet._replace(ssrc=8, timestamp=5) for packet in told]
    assert heard(told + again) == "77"


def test_a_source_whose_timestamps_jump_back_is_heard() -> None:
    told = packets("7")
    assert heard(told + [packet._replace(timestamp=FIRST - 10_000_000) for packet in told]) == "77"


@given(st.binary(max_size=8))
def test_any_payload_is_an_event_or_an_error(payload: bytes) -> None:
    try:
        assert len(bytes(TelephoneEvent.parse(payload))) == 4
    except PacketError:
        assert len(payload) < 4


@pytest.mark.parametrize("keys", ["", "E", "12E", "a"])
def test_what_are_no_keys(keys: str) -> None:
    sender = KeySender(CLOCK, CLOCK)
    with pytest.raises(ValueError, match="what is no key: keys are 0123456789"):
        sender.press(keys)
    assert not sender.wants(FIRST), "none of them is sent"


def test_only_so_many_keys_wait() -> None:
    sender = KeySender(CLOCK, CLOCK)
    sender.press("1" * (WAITING - 1))
    with pytest.raises(ValueError, match="Too many keys wait"):
        sender.press("22")
    sender.press("2")
