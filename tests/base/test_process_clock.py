"""The time that a process lived: what it was stopped for does not count."""

import time

import pytest

from voicepipe.base.process_clock import LOOK_S, ProcessClock


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def test_who_looks_often_sees_the_clock(clock: Clock) -> None:
    process_clock = ProcessClock()
    for _ in range(10):
        clock.now += 0.9
        assert process_clock() == pytest.approx(clock.now)


def test_of_a_long_time_without_a_look_one_second_counts(clock: Clock) -> None:
    process_clock = ProcessClock()
    before = process_clock()
    clock.now += 3600
    assert process_clock() - before == pytest.approx(LOOK_S)
    clock.now += 0.5
    assert process_clock() - before == pytest.approx(LOOK_S + 0.5)
    clock.now += 60
    assert process_clock() - before == pytest.approx(2 * LOOK_S + 0.5)
