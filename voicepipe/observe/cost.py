"""What the host has cost so far, and what of it calls paid, for Prometheus."""

from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import CounterMetricFamily, Metric

from voicepipe.config import PopConfig
from voicepipe.observe.following import CallFacts, CallFollower
from voicepipe.observe.present import HERE
from voicepipe.sizing.price import call_cost, host_cost


class CostMeter(CallFollower):
    """Since the first call or the first scrape. `clock` gives monotonic seconds."""

    def __init__(self, pop: PopConfig, clock: Callable[[], float]) -> None:
        self._pop = pop
        self._clock = clock
        self._began: float | None = None
        self._at = 0.0
        """Up to here `_call_s` counts."""
        self._calls = 0
        self._call_s = 0.0

    def began(self, call: CallFacts) -> None:
        self._count()
        self._calls += 1

    def left(self, call: CallFacts) -> None:
        self._count()
        self._calls -= 1

    def _count(self) -> float:
        """Brings it up to date; returns the seconds that are counted."""
        now = self._clock()
        if self._began is None:
            self._began = self._at = now
        self._call_s += self._calls * (now - self._at)
        self._at = now
        return now - self._began

    def read(self, here: tuple[str, str]) -> Iterator[Metric]:
        """Nothing where no price is known. `here`: the PoP's labels, as HERE names them."""
        if not (price := self._pop.price_per_hour):
            return
        counted_s = self._count()
        for name, told, cost in (
            ("voicepipe_host_cost", "What the host has cost, by pop.price_per_hour.",
             host_cost(price, counted_s)),
            ("voicepipe_calls_cost", "What of it calls paid for their places; the rest is idle cost.",
             call_cost(price, self._pop.slots, self._call_s)),
        ):  # fmt: skip
            family = CounterMetricFamily(name, told, labels=HERE)
            family.add_metric(here, cost)
            yield family
