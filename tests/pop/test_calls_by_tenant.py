"""Calls are counted by tenant, with those of the process before."""

from voicepipe.base.takeover import TakeoverParts
from voicepipe.pop.calls_by_tenant import PART, CallsByTenant


def test_calls_are_counted_until_they_end() -> None:
    calls = CallsByTenant(TakeoverParts())
    assert calls.none_here.is_set()
    for tenant in ("acme", "acme", "clinic"):
        calls.began(tenant)
    assert (calls.of("acme"), calls.of("clinic"), calls.of("other"), calls.all) == (2, 1, 0, 3)
    assert not calls.none_here.is_set()
    for tenant in ("acme", "clinic", "acme"):
        calls.ended(tenant)
    assert calls.all == 0 and calls.none_here.is_set()


def test_calls_of_the_process_before_count_and_do_not_keep_this_one() -> None:
    parts = TakeoverParts()
    calls = CallsByTenant(parts)
    calls.began("acme")
    parts.taken(PART, b'{"acme": 2, "clinic": 1}')
    assert (calls.of("acme"), calls.all, calls.elsewhere) == (3, 4, 3)
    calls.ended("acme")
    assert calls.none_here.is_set() and calls.all == 3
    parts.empty()
    assert calls.all == 0


def test_the_process_that_takes_over_gets_every_change() -> None:
    parts, published = TakeoverParts(), list[bytes]()
    calls = CallsByTenant(parts)
    parts.publish = lambda name, state: published.append(state)
    calls.began("acme")
    calls.ended("acme")
    assert published == [b'{"acme":1}', b"{}"]
