"""Token buckets: who comes too often waits, nobody else does, and what is remembered has an end."""

import pytest

from voicepipe.base.token_bucket import Rate
from voicepipe.ingress import throttle
from voicepipe.ingress.throttle import Throttle


def test_a_burst_and_then_a_rate() -> None:
    made = Throttle(Rate(5, 2), Rate(100, 100))
    assert [made.admits("a", 10.0) for _ in range(7)] == [True] * 5 + [False] * 2
    assert [made.admits("a", 11.0) for _ in range(3)] == [True, True, False]
    assert [made.admits("a", 1000.0) for _ in range(6)] == [True] * 5 + [False], "no more than a burst is saved"


def test_one_that_comes_too_often_takes_nothing_from_the_others() -> None:
    made = Throttle(Rate(5, 1), Rate(10, 1))
    for _ in range(1000):
        made.admits("loud", 1.0)
    assert [made.admits("b", 1.0) for _ in range(5)] == [True] * 5


def test_forged_addresses_have_a_rate_together() -> None:
    made = Throttle(Rate(5, 1), Rate(10, 1))
    assert sum(made.admits(f"address {n}", 1.0) for n in range(1000)) == 10
    assert made.admits("address 7", 2.5)


def test_what_is_remembered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "SOURCES", 10)
    made = Throttle(Rate(1, 0), Rate(1000, 0))
    made.admits("first", 0.0)
    for n in range(20):
        made.admits(f"address {n}", 0.0)
        made.admits(f"address {n}", 0.0)
    assert len(made._sources._of) == 10 and len(made._refused) == 10
    assert made.admits("first", 0.0), "forgotten, so it begins anew"


def test_news_once_a_minute() -> None:
    made = Throttle(Rate(1, 0), Rate(10, 0))
    assert made.summary(0.0) == ""
    for source, times in (("a", 2), ("b", 5)):
        for _ in range(times):
            made.admits(source, 0.0)
    assert made.summary(0.0) == "4 from b, 1 from others"
    made.admits("a", 1.0)
    assert made.summary(30.0) == ""
    assert made.summary(61.0) == "1 from a"
    assert made.summary(200.0) == ""
