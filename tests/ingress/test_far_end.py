"""How much of what was sent the far end has played, where it does not tell."""

import pytest

from voicepipe.ingress.far_end import FarEnd

RATE = 8000


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_it_plays_at_once_and_no_more_than_was_sent(clock: Clock) -> None:
    far = FarEnd(RATE, clock)
    far.send(RATE)
    assert (far.played(), far.remaining_s()) == (0, 1.0)
    clock.now += 0.25
    assert (far.played(), far.remaining_s()) == (2000, 0.75)
    clock.now += 10
    assert (far.sent, far.played(), far.remaining_s()) == (RATE, RATE, 0)


def test_what_follows_at_once_is_played_behind_it_and_what_comes_later_from_then_on(clock: Clock) -> None:
    far = FarEnd(RATE, clock)
    far.send(800)
    clock.now += 0.0625
    far.send(800)
    clock.now += 0.0625
    assert far.played() == 1000
    clock.now += 60
    far.send(800)
    assert far.played() == 1600, "silence was no sound"
    clock.now += 0.0625
    assert far.played() == 2100


def test_the_network_and_its_buffer_take_time(clock: Clock) -> None:
    far = FarEnd(RATE, clock, delay_s=0.25)
    far.send(RATE)
    clock.now += 0.25
    assert far.played() == 0
    clock.now += 0.5
    assert far.played() == 4000


def test_what_is_cleared_counts_neither_as_sent_nor_as_played(clock: Clock) -> None:
    far = FarEnd(RATE, clock)
    far.send(RATE)
    clock.now += 0.25
    assert far.clear() == 6000
    assert (far.sent, far.played(), far.remaining_s()) == (2000, 2000, 0)
    assert far.clear() == 0
    far.send(800)
    clock.now += 1
    assert far.played() == 2800
