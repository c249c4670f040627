"""The cost of the host so far, and the part that calls paid: for Prometheus, and for the dashboard."""

from collections.abc import Callable, Iterator

import msgspec
from prometheus_client.metrics_core import CounterMetricFamily, Metric

from voicepipe.config import PopConfig
from voicepipe.observe.call_followers import CallFacts, CallFollower
from voicepipe.observe.metric_families import HERE, at_present
from voicepipe.sizing.price import call_cost, host_cost, idle_cost


class HostCost(msgspec.Struct, frozen=True, kw_only=True):
    """The price of a host, and its cost since its PoP began to count. Money is in the operator's currency."""

    price_per_hour: float
    cost_per_minute: float
    """Price of a minute of a call, for its slot."""
    counted_s: float
    minutes: float
    """Minutes of calls in this time."""
    host_cost: float
    calls_cost: float
    """The part of the cost that calls paid for their slots."""
    idle_cost: float
    """The part of the cost that no call paid."""


class CostMeter(CallFollower):
    """Counts a host's cost since the start of its PoP. `clock` gives monotonic seconds."""

    def __init__(self, pop: PopConfig, clock: Callable[[], float]) -> None:
        self._pop = pop
        self._clock = clock
        self._began = self._at = clock()
        """The second up to which `_call_s` counts."""
        self._calls = 0
        self._call_s = 0.0

    def began(self, call: CallFacts) -> None:
        self._count()
        self._calls += 1

    def left(self, call: CallFacts) -> None:
        self._count()
        self._calls -= 1

    def _count(self) -> None:
        now = self._clock()
        self._call_s += self._calls * (now - self._at)
        self._at = now

    def so_far(self) -> HostCost | None:
        """The cost so far. None: no price is known."""
        if not (price := self._pop.price_per_hour):
            return None
        self._count()
        slots, counted_s = self._pop.slots, self._at - self._began
        return HostCost(
            price_per_hour=price, cost_per_minute=call_cost(price, slots, 60), counted_s=counted_s,
            minutes=self._call_s / 60, host_cost=host_cost(price, counted_s),
            calls_cost=call_cost(price, slots, self._call_s),
            idle_cost=idle_cost(price, slots, counted_s, self._call_s),
        )  # fmt: skip

    def read(self, here: tuple[str, str]) -> Iterator[Metric]:
        """The metrics; none where no price is known. `here`: the PoP's labels, as in HERE."""
        if not (cost := self.so_far()):
            return
        for name, help_text, total in (
            ("voicepipe_host_cost", "What the host has cost, by pop.price_per_hour.", cost.host_cost),
            ("voicepipe_calls_cost", "What of it calls paid for their places; the rest is idle cost.", cost.calls_cost),
        ):
            yield at_present(CounterMetricFamily, name, help_text, HERE, [(here, total)])
