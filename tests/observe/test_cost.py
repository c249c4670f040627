"""What a host has cost, and what of it calls paid."""

from itertools import chain

import pytest

from voicepipe.config import PopConfig
from voicepipe.observe.call_followers import CallFacts
from voicepipe.observe.cost import CostMeter

CALL = CallFacts(id="rtc_1", tenant="acme", agent="front-desk", line="sip", since=0.0)


def read(meter: CostMeter) -> dict[str, float]:
    samples = chain(*(family.samples for family in meter.read(("fra1", "eu"))))
    return {sample.name: sample.value for sample in samples}


def test_calls_pay_for_their_places_while_they_last() -> None:
    now = 1000.0
    meter = CostMeter(PopConfig(slots=10, price_per_hour=36.0), lambda: now)
    meter.began(CALL)
    now += 100
    meter.began(CALL)
    now += 100
    meter.left(CALL)
    now += 100
    seen = read(meter)
    assert seen["voicepipe_host_cost_total"] == 36 * 300 / 3600
    assert seen["voicepipe_calls_cost_total"] == 36 * 400 / 3600 / 10, "a call that goes on has paid so far"


def test_the_hosts_cost_counts_from_the_start_and_is_what_calls_paid_and_what_was_idle() -> None:
    now = 1000.0
    meter = CostMeter(PopConfig(slots=10, price_per_hour=36.0), lambda: now)
    now += 300
    meter.began(CALL)
    now += 300
    cost = meter.so_far()
    assert cost and (cost.price_per_hour, cost.counted_s, cost.minutes) == (36.0, 600.0, 5.0)
    assert cost.cost_per_minute == pytest.approx(0.06)
    assert (cost.host_cost, cost.calls_cost, cost.idle_cost) == pytest.approx((6.0, 0.3, 5.7))


def test_without_a_price_nothing_is_told() -> None:
    meter = CostMeter(PopConfig(), lambda: 0.0)
    assert not read(meter) and meter.so_far() is None
