"""What the network does to packets, and what a call hears of it. Times are virtual."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.rtp.jitter import MOST_WAIT_S, HeardPacket, JitterBuffer, LostPacket, PlayoutItem, SilentSpan
from voicepipe.rtp.packet import RtpPacket

CLOCK, SPAN, FRAME_S = 48_000, 960, 0.020
FIRST_SEQ, FIRST_STAMP = 65_500, 2**32 - 20_000
"""Both run over within the first seconds."""

Arrival = tuple[float, int]
"""When packet number n arrives, in seconds after the first was sent."""


def packet(n: int, payload: bytes = b"x" * 60, stamp: int | None = None) -> RtpPacket:
    stamp = n * SPAN if stamp is None else stamp
    return RtpPacket(96, (FIRST_SEQ + n) % 2**16, (FIRST_STAMP + stamp) % 2**32, 7, payload)


def number(heard: RtpPacket) -> int:
    return (heard.seq - FIRST_SEQ) % 2**16


class Network:
    """Feeds arrivals to a buffer that is asked at each, and every 20 ms."""

    def __init__(self, arrivals: Iterable[Arrival], until: float) -> None:
        self.buffer = JitterBuffer(CLOCK)
        self.out: list[tuple[float, PlayoutItem]] = []
        ticks = [(tick * FRAME_S + 0.007, -1) for tick in range(int(until / FRAME_S))]
        for when, n in sorted([*arrivals, *ticks]):
            if n >= 0:
                self.buffer.push(packet(n), when)
            while (item := self.buffer.pop(when)) is not None:
                self.out.append((when, item))

    @property
    def heard(self) -> list[int]:
        return [number(item.packet) for _, item in self.out if isinstance(item, HeardPacket)]

    @property
    def lost(self) -> int:
        return sum(isinstance(item, LostPacket) for _, item in self.out)

    @property
    def silence_ms(self) -> float:
        return sum(item.span for _, item in self.out if isinstance(item, SilentSpan)) * 1000 / CLOCK

    def delays_ms(self, since: float = 0.0) -> list[float]:
        """How much later than it was sent each packet was handed on, of those sent after `since`."""
        heard = [(when, number(item.packet) * FRAME_S) for when, item in self.out if isinstance(item, HeardPacket)]
        return [1000 * (when - sent) for when, sent in heard if sent >= since]


def steady(seconds: float) -> list[Arrival]:
    return [(n * FRAME_S, n) for n in range(int(seconds / FRAME_S))]


def jittery(seconds: float, jitter_s: float, loss: float, seed: int = 1) -> list[Arrival]:
    rng = random.Random(seed)
    return [(when + rng.uniform(0, jitter_s), n) for when, n in steady(seconds) if rng.random() >= loss]


def test_without_jitter_nothing_is_delayed() -> None:
    network = Network(steady(10), 10)
    assert network.heard == list(range(500))
    assert max(network.delays_ms()) < 1
    assert (network.lost, network.silence_ms) == (0, 0)


def test_a_lost_packet_is_a_hole_of_20_ms_and_no_lasting_delay() -> None:
    network = Network([(when, n) for when, n in steady(10) if n % 100 != 50], 10)
    assert network.lost == 5
    assert [item.span for _, item in network.out if isinstance(item, LostPacket)] == [SPAN] * 5
    assert max(network.delays_ms()) <= 30
    late = [delay for delay in network.delays_ms() if delay >= 1]
    assert len(late) <= 2 * 5, "the two packets after it wait"
    following = next(item for _, item in network.out if isinstance(item, LostPacket)).following
    assert following == b"x" * 60, "the codec may find a copy of the lost one in there"


@pytest.mark.parametrize("seed", range(5))
def test_heavy_jitter_and_loss_delay_by_little_and_end_with_it(seed: int) -> None:
    bad = jittery(30, 0.060, 0.05, seed)
    network = Network([*bad, *((when, n) for when, n in steady(45) if when >= 30)], 45)
    assert max(network.delays_ms()) <= 120
    assert len(network.heard) > 0.97 * (len(bad) + 750), "few come too late"
    assert network.heard == sorted(network.heard)
    assert max(network.delays_ms(since=30.1)) < 1
    assert network.silence_ms == 0


def test_what_is_waited_for_grows_with_the_jitter_and_shrinks_again() -> None:
    calm = Network(steady(5), 5).buffer.wait_s
    rough = Network(jittery(5, 0.060, 0), 5).buffer.wait_s
    cleared = Network([*jittery(5, 0.060, 0), *((w, n) for w, n in steady(10) if w >= 5)], 10).buffer.wait_s
    assert calm < rough and cleared == calm
    assert 0.045 < rough <= MOST_WAIT_S


def test_overtaken_packets_are_put_back_in_order() -> None:
    network = Network([(0, 0), (0.041, 1), (0.040, 2), (0.060, 3)], 1)
    assert network.heard == [0, 1, 2, 3] and network.lost == 0


def test_a_stall_is_caught_up_with_and_no_silence() -> None:
    """A machine that listens hears what was held up all at once; a silence in its place could end the caller's turn."""
    network = Network([(max(when, 2.3) if when > 2 else when, n) for when, n in steady(5)], 5)
    assert network.heard == list(range(250))
    assert (network.lost, network.silence_ms) == (0, 0)
    assert max(network.delays_ms(since=2.3)) < 1


def test_a_sender_that_stops_is_silent_and_then_goes_on() -> None:
    stops = [(when, n) for when, n in steady(2)]
    later = [(when + 3, n) for when, n in steady(4) if when >= 2]  # its timestamps stand still, as after a mute
    network = Network([*stops, *later], 7)
    assert network.heard == list(range(200)) and network.lost == 0
    assert network.silence_ms == pytest.approx(3000, abs=60)


def test_a_long_hole_is_left_out_and_a_short_one_is_filled() -> None:
    short = Network([(when, n) for when, n in steady(5) if not 100 <= n < 107], 5)
    assert (short.lost, short.buffer.counts.lost) == (7, 7)
    long = Network([(when, n) for when, n in steady(5) if not 100 <= n < 115], 5)
    assert (long.lost, long.buffer.counts.lost, long.silence_ms) == (0, 15, 0)
    assert max(long.delays_ms()) < 1, "it was overdue when the next one came"


def test_announced_silence_is_filled_as_time_goes_by() -> None:
    """Opus' DTX: a packet of one byte, then nothing, and timestamps that go on with the time."""
    buffer, out = JitterBuffer(CLOCK), list[tuple[float, PlayoutItem]]()

    def drain(now: float) -> None:
        while (item := buffer.pop(now)) is not None:
            out.append((now, item))

    for n in range(50):
        buffer.push(packet(n), n * FRAME_S)
        drain(n * FRAME_S)
    buffer.push(packet(50, b"\0"), 1.0, silent=True)
    drain(1.0)
    for tick in range(1, 25):
        drain(1.0 + tick * FRAME_S + 0.001)
    silence = sum(item.span for _, item in out if isinstance(item, SilentSpan)) / CLOCK
    assert silence == pytest.approx(0.46, abs=0.03)
    buffer.push(packet(51, stamp=75 * SPAN), 1.5)
    drain(1.5)
    assert isinstance(out[-1][1], HeardPacket)
    total = sum(item.span if isinstance(item, SilentSpan) else SPAN for _, item in out) / CLOCK
    assert total == pytest.approx(1.52, abs=0.03)


def test_a_sender_that_begins_anew_is_heard() -> None:
    buffer = JitterBuffer(CLOCK)
    buffer.push(packet(0), 0.0)
    assert isinstance(buffer.pop(0.0), HeardPacket)
    buffer.push(RtpPacket(96, 20_000, 5, 7, b"x"), 0.02)
    assert isinstance(buffer.pop(0.02), HeardPacket)
    assert buffer.pop(0.02) is None


def test_late_and_double_packets_are_counted_and_not_heard() -> None:
    buffer = JitterBuffer(CLOCK)
    for n in (0, 2, 2):
        buffer.push(packet(n), n * FRAME_S)
    assert [type(buffer.pop(0.1)) for _ in range(4)] == [HeardPacket, LostPacket, HeardPacket, type(None)]
    buffer.push(packet(1), 0.2)
    assert buffer.pop(0.2) is None
    counts = buffer.counts
    assert (counts.received, counts.lost, counts.late) == (4, 1, 2)
    assert buffer.expected == 3


def pressed(lost: frozenset[int] = frozenset()) -> tuple[JitterBuffer, list[tuple[float, PlayoutItem]]]:
    """Sound, packets 10 to 21 of a key, whose timestamps stand still, and sound again; `lost` do not arrive."""
    buffer, out = JitterBuffer(CLOCK), list[tuple[float, PlayoutItem]]()
    for n in range(40):
        now = n * FRAME_S
        if n not in lost:
            key = 10 <= n < 22
            buffer.push(packet(n, stamp=10 * SPAN if key else n * SPAN), now, sound=not key)
        for at in (now, now + 0.007):
            while (item := buffer.pop(at)) is not None:
                out.append((at, item))
    return buffer, out


@pytest.mark.parametrize("lost", [(), (10,), (21,), (10, 11, 12), (15, 20, 21), tuple(range(10, 22))])
def test_a_key_in_place_of_sound_is_silence_and_no_loss_of_sound(lost: tuple[int, ...]) -> None:
    buffer, out = pressed(frozenset(lost))
    items = [item for _, item in out]
    assert [number(item.packet) for item in items if isinstance(item, HeardPacket)] == [*range(10), *range(22, 40)]
    assert buffer.counts.lost == len(lost)
    if len(lost) < 12:
        assert not any(isinstance(item, LostPacket) for item in items)
        silence = sum(item.span for item in items if isinstance(item, SilentSpan)) * 1000 / CLOCK
        assert silence == pytest.approx(12 * 20, abs=21)
    last = [when for when, item in out if isinstance(item, HeardPacket)][-1]
    assert last == pytest.approx(39 * FRAME_S, abs=0.001), "no lasting delay"


def test_the_silence_of_a_long_key_passes_with_the_time() -> None:
    buffer, silence = JitterBuffer(CLOCK), 0
    buffer.push(packet(0), 0.0)
    assert isinstance(buffer.pop(0.0), HeardPacket)
    for n in range(1, 150):
        buffer.push(packet(n, stamp=SPAN), n * FRAME_S, sound=False)
        while (item := buffer.pop(n * FRAME_S)) is not None:
            assert isinstance(item, SilentSpan)
            silence += item.span
        assert silence / CLOCK == pytest.approx(n * FRAME_S, abs=0.06)
    assert buffer.jitter == 0


@given(
    st.lists(
        st.tuples(st.floats(0, 0.2), st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1), st.booleans()), max_size=60
    )
)
def test_whatever_arrives_nothing_is_heard_twice_and_it_always_ends(
    arrivals: list[tuple[float, int, int, bool]],
) -> None:
    buffer, now, heard = JitterBuffer(CLOCK), 0.0, 0
    for pause, seq, stamp, sound in arrivals:
        now += pause
        buffer.push(RtpPacket(96, seq, stamp, 7, b"x"), now, sound=sound)
        for _ in range(200):
            item = buffer.pop(now)
            if item is None:
                break
            heard += isinstance(item, HeardPacket)
            assert not isinstance(item, LostPacket | SilentSpan) or 0 < item.span <= CLOCK
        else:
            pytest.fail("it never ends")
    assert heard <= len(arrivals)
