"""A token bucket: so much at once, so much in the long run, and what is owed."""

import math

import pytest

from voicepipe.base.token_bucket import Bucket, Rate


def test_a_burst_and_then_a_rate() -> None:
    bucket = Bucket(Rate(3, 2))
    assert [bucket.admits(10.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.admits(11.0) for _ in range(3)] == [True, True, False]
    assert [bucket.admits(1000.0) for _ in range(4)] == [True, True, True, False], "no more than a burst is saved"


@pytest.mark.parametrize(("owes", "paid_at"), [(None, 1.0), (math.inf, 50.0)])
def test_a_debt_has_a_bound_unless_it_is_told_otherwise(owes: float | None, paid_at: float) -> None:
    bucket = Bucket(Rate(2, 2), owes)
    assert bucket.has(0.0)
    bucket.take(102)
    assert bucket.wait_s(0.0) == paid_at
    assert not bucket.has(paid_at - 0.1) and bucket.has(paid_at + 0.1)


def test_another_rate_holds_from_its_time_on() -> None:
    bucket = Bucket(Rate(1, 1), math.inf)
    bucket.take(11)
    bucket.set_rate(0.1, 5.0)
    assert bucket.wait_s(5.0) == pytest.approx(50)
    bucket.set_rate(1, 15.0)
    assert bucket.wait_s(15.0) == pytest.approx(4)
    assert bucket.wait_s(100.0) == 0


def test_what_is_without_limit_stays_so() -> None:
    bucket = Bucket(Rate(math.inf, 0))
    assert all(bucket.admits(float(n)) for n in range(10))
