"""Which packets of telephone-events are one press: as phones, gateways and carriers send them, and as networks deliver
them. What is said of a sender is what public reports show of it."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.telephone_events import KEYS, KeyReceiver, TelephoneEvent

STEP = 160
"""20 ms at 8 kHz."""
PAUSE = 5
"""Packets between two presses: 100 ms."""
SILENT = 50
"""Packets of a long pause: 1 s."""


@dataclass
class Sender:
    """Sends presses in its own manner; `sent` is what it has sent, without the packets of sound between."""

    stuck: bool = False
    """All keys have the first one's timestamp."""
    moves: int = 0
    """The timestamp moves on by so much with each packet of one press."""
    marks: str = "first"
    """Which packets have the marker: "first", "none", "all", "copies" (the three first ones)."""
    firsts: int = 1
    """Copies of the first packet."""
    ends: int = 3
    ends_apart: int = 1
    """Packets from one copy of the last packet to the next."""
    ends_move: int = 0
    """The timestamps of these copies move on by so much."""
    interleaved: bool = False
    """A packet of sound follows each packet of an event."""
    begins_at: int = STEP
    """Duration in the first packet."""
    packets_ms: int = 20
    seq: int = 65_530
    timestamp: int = 2**32 - 800
    sent: list[RtpPacket] = field(default_factory=list)
    presses: list[list[RtpPacket]] = field(default_factory=list)
    _stamp: int | None = None

    def press(self, key: str, ms: int = 100, pause: int = PAUSE, *, sent: bool = True) -> None:
        """One key down for `ms`, then `pause` packets without; not `sent`: silence, of which there are no packets."""
        units, stamp = self.packets_ms * 8, self.timestamp
        if self.stuck:
            stamp = self._stamp = stamp if self._stamp is None else self._stamp
        durations = [*range(self.begins_at, max(ms, self.packets_ms) * 8, units)]
        packets = [(durations[0] if durations else units, False)] * (self.firsts - 1)
        packets += [(duration, False) for duration in durations] + [(ms * 8, True)] * self.ends
        marked = {"first": 1, "none": 0, "all": len(packets), "copies": self.firsts}[self.marks]
        begun = len(self.sent)
        for n, (duration, ended) in enumerate(packets):
            copy = max(0, n - (len(packets) - self.ends)) if ended else 0
            moved = self.moves * n + self.ends_move * copy
            payload = bytes(TelephoneEvent(KEYS.index(key), ended, min(duration, 0xFFFF), 10 + n % 3))
            self.sent.append(RtpPacket(101, self.seq % 2**16, (stamp + moved) % 2**32, 7, payload, n < marked))
            self.seq += (self.ends_apart if ended else 1) * (2 if self.interleaved else 1)
        self.seq += pause if sent else 0
        self.timestamp += ms * 8 + pause * STEP
        self.presses.append(self.sent[begun:])


def heard(packets: Iterable[RtpPacket]) -> str:
    receiver = KeyReceiver()
    return "".join(key for packet in packets if (key := receiver.heard(packet)))


SENDERS = {
    "as RFC 4733 has it": Sender(),
    "livekit/sip#796: one timestamp for all keys": Sender(stuck=True),
    "one timestamp, no marker": Sender(stuck=True, marks="none"),
    "one timestamp, no end": Sender(stuck=True, ends=0),
    "one timestamp, neither marker nor end": Sender(stuck=True, marks="none", ends=0),
    "one timestamp, one end": Sender(stuck=True, ends=1),
    "one timestamp, markers on copies of the first": Sender(stuck=True, firsts=3, marks="copies"),
    "hass-sip#24: no marker": Sender(marks="none"),
    "neither marker nor end": Sender(marks="none", ends=0),
    "Cisco: three first packets, of no duration": Sender(firsts=3, marks="copies", begins_at=0),
    "Cisco: only the first of three is marked": Sender(firsts=3, begins_at=0),
    "markers on all packets": Sender(marks="all"),
    "markers on all packets, one timestamp": Sender(marks="all", stuck=True),
    "peers#7, Sonus: the timestamp moves with each packet": Sender(moves=STEP),
    "the timestamp moves, no marker": Sender(moves=STEP, marks="none"),
    "the timestamp moves, no end": Sender(moves=STEP, ends=0),
    "the timestamp moves, neither marker nor end": Sender(moves=STEP, marks="none", ends=0),
    "the timestamp moves, markers on all packets but ends": Sender(moves=STEP, marks="all", ends=0),
    "the timestamp moves, and begins anew with each key": Sender(moves=STEP, stuck=True),
    "rtpengine#1812: the last two ends have other timestamps": Sender(ends_move=STEP),
    "rtpengine#1812, beyond the key's end": Sender(ends_move=480),
    "pjproject#361: an event of no duration first": Sender(begins_at=0),
    "a packet each 50 ms, and sound between": Sender(packets_ms=50, begins_at=400, interleaved=True),
    "ends 100 ms apart": Sender(ends_apart=5),
    "ends 100 ms apart, one timestamp": Sender(ends_apart=5, stuck=True),
    "five ends": Sender(ends=5),
}
NUMBERS = ["1234", "1111", "1122334", "0", "*0#", "ABCD", "00"]


@pytest.mark.parametrize("manner", SENDERS)
@pytest.mark.parametrize("keys", NUMBERS)
@pytest.mark.parametrize("ms", [40, 100, 1696])
def test_each_press_is_told_once(manner: str, keys: str, ms: int) -> None:
    sender = anew(SENDERS[manner])
    for key in keys:
        sender.press(key, ms)
    assert heard(sender.sent) == keys


def anew(sender: Sender) -> Sender:
    given = {name: value for name, value in vars(sender).items() if name not in ("sent", "presses")}
    return Sender(**given)


@pytest.mark.parametrize("manner", SENDERS)
def test_copies_made_by_the_network_and_late_packets_tell_nothing(manner: str) -> None:
    sender = anew(SENDERS[manner])
    for key in "1223":
        sender.press(key)
    assert heard([packet for packet in sender.sent for _ in range(3)]) == "1223"
    assert heard([*sender.sent, *sender.sent]) == "1223"
    assert heard([*sender.sent, *reversed(sender.sent)]) == "1223"


@pytest.mark.parametrize("manner", SENDERS)
@pytest.mark.parametrize("seed", range(10))
def test_packets_that_overtake_one_another(manner: str, seed: int) -> None:
    rng, sender = random.Random(seed), anew(SENDERS[manner])
    for key in "1133*":
        sender.press(key)
    assert heard(shuffled(rng, sender.sent, 1.9)) == "1133*"


def shuffled(rng: random.Random, packets: list[RtpPacket], most: float) -> list[RtpPacket]:
    """Each is late by at most so many packets."""
    order = sorted(range(len(packets)), key=lambda n: n + rng.uniform(0, most))
    return [packets[n] for n in order]


@given(
    st.randoms(use_true_random=False),
    st.text(KEYS, min_size=1, max_size=12),
    st.sampled_from(["first", "none"]),
    st.booleans(),
)
def test_of_known_presses_each_is_told_once_whatever_is_lost(
    rng: random.Random, keys: str, marks: str, interleaved: bool
) -> None:
    """A sender that keeps to the RFC: any packet of a press is enough, in whatever order and how often it comes."""
    sender = Sender(marks=marks, interleaved=interleaved, seq=rng.randrange(2**16), timestamp=rng.randrange(2**32))
    for key in keys:
        sender.press(key, rng.choice([40, 60, 100, 140]), rng.randrange(4, 60))
    came = list[RtpPacket]()
    for press in sender.presses:
        survivors = [packet for packet in press if rng.random() < 0.4] or [rng.choice(press)]
        copies = [packet for packet in survivors for _ in range(rng.choice([1, 1, 2]))]
        came += shuffled(rng, copies, 4)
    assert heard(came) == keys


@given(st.randoms(use_true_random=False), st.text("1", min_size=1, max_size=12), st.sampled_from(["first", "none"]))
def test_a_sender_that_sends_nothing_in_silence(rng: random.Random, keys: str, marks: str) -> None:
    """Sequence numbers go on as if there had been no pause, and packets are lost."""
    sender = Sender(marks=marks, seq=rng.randrange(2**16), timestamp=rng.randrange(2**32))
    for key in keys:
        sender.press(key, rng.choice([40, 60, 100, 140]), rng.randrange(8, 60), sent=False)
    came = list[RtpPacket]()
    for press in sender.presses:
        came += [packet for packet in press if rng.random() < 0.4] or [rng.choice(press)]
    assert heard(came) == keys


def test_a_press_of_which_nothing_but_ends_come_after_a_silence() -> None:
    first = [(0, 0, False, 160), (1, 0, False, 320), *((seq, 0, True, 320) for seq in (3, 4, 5))]
    second = [(8, 1920, True, 320), (9, 1920, True, 320)]
    sent = [
        RtpPacket(101, seq, stamp, 7, bytes(TelephoneEvent(1, ended, lasts)), seq == 0)
        for seq, stamp, ended, lasts in first + second
    ]
    assert heard(sent) == "11"


@given(st.randoms(use_true_random=False), st.text(KEYS, min_size=1, max_size=12), st.booleans())
def test_with_one_timestamp_each_is_told_once_if_a_sign_is_left(rng: random.Random, keys: str, marks: bool) -> None:
    """The other signs: another key, the marker, or what follows an end."""
    sender = Sender(stuck=True, marks="first" if marks else "none", seq=rng.randrange(2**16))
    for key in keys:
        sender.press(key, rng.choice([60, 100, 140]), rng.randrange(4, 60))
    came = list[RtpPacket]()
    for press in sender.presses:
        first, *inner, _, _, _ = press
        ends = rng.sample(press[-3:], rng.randrange(1, 4))
        came += [first, *(packet for packet in inner if rng.random() < 0.5), *ends]
    assert heard(shuffled(rng, came, 0.9)) == keys


@pytest.mark.parametrize(
    ("losses", "told"),
    [((), "55"), ((0,), "55"), ((-1, -2, -3), "55"), ((0, -1, -2, -3), "55"), ((0, 1, 2, 3), "5")],
)
def test_the_same_key_twice_with_one_timestamp(losses: tuple[int, ...], told: str) -> None:
    """Of each press the same packets are lost. Without its beginning the second is a copy of the first one's end."""
    sender = Sender(stuck=True)
    sender.press("5")
    sender.press("5")
    came = list[RtpPacket]()
    for press in sender.presses:
        lost = {n % len(press) for n in losses}
        came += [packet for n, packet in enumerate(press) if n not in lost]
    assert heard(came) == told


def held(lasts: int, segment: int, *, ends: bool = True) -> list[RtpPacket]:
    """A key that is held for `lasts` units, each segment 0xFFFF of them long and begun `segment` after the last."""
    packets = list[RtpPacket]()
    for n in range(0, lasts, STEP):
        whole, rest = divmod(n + STEP, 0xFFFF)
        payload = bytes(TelephoneEvent(3, ends and n + STEP >= lasts, rest))
        packets.append(RtpPacket(101, len(packets), whole * segment, 7, payload, n == 0))
    return packets


@pytest.mark.parametrize(
    ("segment", "every"), [(0xFFFF, 1), (0xFFFF, 3), (0xFFFF, 40), (0x10000, 1), (0x10000, 3), (0, 1), (0, 3)]
)
def test_a_key_that_is_held_for_half_a_minute(segment: int, every: int) -> None:
    """Longer than its duration can say, and with only each third or fortieth of its packets. Not all senders move the
    timestamp on by 0xFFFF, as RFC 4733 (2.5.1.3) has it."""
    packets = held(240_000, segment)[::every]
    assert heard(packets) == "3"
    next_key = Sender(seq=len(held(240_000, segment)) + PAUSE, timestamp=300_000)
    next_key.press("3")
    assert heard([*packets, *next_key.sent]) == "33"


def test_a_gap_within_a_long_press() -> None:
    """unispeech/asterisk-unimrcp#44: 160 units, 320, and after a second and a half the end."""
    sent = [(0, 160, False), (1, 320, False), (2, 13_568, True), (3, 13_568, True), (4, 13_568, True)]
    assert heard(RtpPacket(101, n, 5, 7, bytes(TelephoneEvent(2, end, held)), n == 0) for n, held, end in sent) == "2"


def test_an_end_that_says_less_than_was_said_before_is_the_end() -> None:
    """A gateway rounds up while the key is down, and says at its end for how long it was."""
    sent = [(0, 160, False), (1, 800, False), (2, 700, True), (3, 700, True)]
    assert heard(RtpPacket(101, n, 5, 7, bytes(TelephoneEvent(2, end, held)), n == 0) for n, held, end in sent) == "2"


def test_numbers_and_timestamps_that_begin_anew() -> None:
    """A transfer behind the far end: the same source goes on from other numbers."""
    before, after = Sender(seq=40_000, timestamp=10_000_000), Sender(seq=12, timestamp=55)
    back = Sender(seq=40_100, timestamp=9_000_000)
    for sender in (before, after, back):
        sender.press("7")
    assert heard([*before.sent, *after.sent]) == "77"
    assert heard([*before.sent, *back.sent]) == "77"


def test_the_next_key_after_a_quarter_of_an_hour() -> None:
    """Sequence numbers run over meanwhile, and seem to have gone back."""
    for packets in (32_769, 45_000, 65_000, 65_530, 65_536, 70_000):
        sender = Sender()
        sender.press("1", pause=packets)
        sender.press("1")
        assert heard(sender.sent) == "11"


def test_a_key_whose_every_packet_was_overtaken_by_the_next_key_is_told() -> None:
    """Late, rather than never."""
    sender = Sender()
    sender.press("1")
    sender.press("2")
    first, second = sender.presses
    assert heard([*second[:3], *first, *second[3:]]) == "21"


def test_other_events_between_two_presses() -> None:
    """A hook flash is no key, and ends the press before."""
    sender = Sender(stuck=True, marks="none", ends=0)
    sender.press("4", 60)
    flash = sender.sent[-1]._replace(seq=sender.seq % 2**16, payload=bytes(TelephoneEvent(16, True, 400)))
    sender.seq += PAUSE
    sender.press("4", 100)
    assert heard([*sender.presses[0], flash, *sender.presses[1]]) == "44"


@given(st.lists(st.tuples(st.integers(0, 255), st.booleans(), st.integers(0, 0xFFFF), st.booleans(),
                          st.integers(0, 0xFFFF), st.integers(0, 2**32 - 1), st.sampled_from([7, 8]))))  # fmt: skip
def test_any_packets_tell_keys_or_nothing(
    packets: list[tuple[int, bool, int, bool, int, int, int]],
) -> None:
    receiver = KeyReceiver()
    for number, end, duration, marker, seq, timestamp, ssrc in packets:
        told = receiver.heard(
            RtpPacket(101, seq, timestamp, ssrc, bytes(TelephoneEvent(number, end, duration)), marker)
        )
        assert told is None or told == KEYS[number]
        assert len(receiver._presses) <= 8
