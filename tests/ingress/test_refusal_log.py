"""What is refused, in the log: no more than can be read."""

import logging

import pytest

from voicepipe.ingress import refusal_log
from voicepipe.ingress.refusal_log import LINES, RefusalLog

EACH, ALL = (rate.burst for rate in LINES)


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(refusal_log, "time", made)
    return made


def log() -> RefusalLog:
    return RefusalLog(logging.getLogger("voicepipe.door"), "INVITEs")


def test_a_refusal_is_a_line(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    log().log("192.0.2.1", "%s from %s: %d", "INVITE", "192.0.2.1", 403)
    assert caplog.messages == ["INVITE from 192.0.2.1: 403"]


def test_of_masses_some_are_told_and_that_there_were_more(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    tells = log()
    for number in range(1000):
        tells.log("192.0.2.1", "no %d", number)
    assert caplog.messages[:20] == [f"no {number}" for number in range(20)]
    assert len(caplog.messages) == EACH + 1
    assert caplog.messages[-1].startswith(
        "INVITEs are refused in masses, and not all of them told: also 1 from 192.0.2.1"
    )
    clock.now += 120
    tells.log("192.0.2.1", "no more")
    assert caplog.messages[-1] == "no more", "it may be told again after a while"


def test_one_address_does_not_hide_another(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    tells = log()
    for _ in range(1000):
        tells.log("192.0.2.1", "flood")
    tells.log("192.0.2.2", "once")
    assert "once" in caplog.messages


def test_many_addresses_fill_no_disk(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    tells = log()
    for number in range(10_000):
        tells.log(f"192.0.{number % 250}.{number // 250}", "no")
    assert len(caplog.messages) <= ALL + 1
