"""The metrics of a directory for Prometheus: where it sends calls, and its view of the PoPs."""

from collections.abc import Callable, Iterator, Sequence
from typing import get_args

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from voicepipe.base.errors import Reason, WhyNone
from voicepipe.config.phone_config import PhoneKind
from voicepipe.directory.directory import PlacedCall, WhyBounced
from voicepipe.directory.fleet_view import SeenPop
from voicepipe.observe.metric_families import Families, ReadNow, at_present, written

OF_A_POP = ("directory", "pop", "region")


class FleetMetrics:
    """The metrics of a directory for Prometheus: where it sends calls, and the PoPs that it sees (`pops`). Implements
    `directory.PlacementFollower`."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._registry = registry = CollectorRegistry()
        self._now = ReadNow()
        registry.register(self._now)
        families = Families(registry, {"directory": directory})
        self._placements = families.counter(
            "voicepipe_directory_placements", "Requests that got this PoP first, by why.", "pop", "reason"
        )
        self._unplaced = families.counter(
            "voicepipe_directory_placements_failed", "Requests that got none, by why.", "reason"
        )
        self._bounced = families.counter(
            "voicepipe_directory_placements_bounced",
            "Calls that a PoP to which they were sent did not take: it refused, it gave no answer, or the caller came "
            "back and told so (those who went on to their next candidate are not known).", "pop", "reason",
        )  # fmt: skip
        self._refused = families.counter(
            "voicepipe_directory_refusals", "Phone calls that were refused here before a PoP was looked for.", "door",
            "reason",
        )  # fmt: skip
        for why in get_args(WhyNone):
            self._unplaced(why)

    def placed(self, call: PlacedCall) -> None:
        self._placements(call.pop, call.why.replace(" ", "_")).inc()
        for why in get_args(WhyBounced):
            self._bounced(call.pop, why)  # At 0, before the first.

    def not_placed(self, why: WhyNone) -> None:
        self._unplaced(why).inc()

    def bounced(self, pop: str, why: WhyBounced) -> None:
        self._bounced(pop, why).inc()

    def refused(self, kind: PhoneKind, reason: Reason) -> None:
        self._refused(kind, reason).inc()

    def read(
        self, accept: str, pops: Sequence[SeenPop], relayed: int, is_cut_off: bool
    ) -> Callable[[], tuple[bytes, str]]:
        """As `operator_views.MetricsApi.read`."""
        self._now.metrics = [*self._of_pops(pops), *self._of_itself(relayed, is_cut_off)]
        return written(self._registry, accept)

    def _of_itself(self, relayed: int, is_cut_off: bool) -> Iterator[Metric]:
        for name, help_text, value in (
            ("calls_relayed", "Calls that go through this directory now.", relayed),
            ("cut_off", "1: it hears no PoPs, and goes on with what it knew last.", is_cut_off),
        ):
            samples = [((self._directory,), float(value))]
            yield at_present(GaugeMetricFamily, f"voicepipe_directory_{name}", help_text, ("directory",), samples)

    def _of_pops(self, pops: Sequence[SeenPop]) -> Iterator[Metric]:
        figures: tuple[tuple[str, str, Callable[[SeenPop], float]], ...] = (
            ("silent", "1: it no longer reports, and has not said that it ends.", lambda seen: seen.silent),
            ("report_age_seconds", "Since its last report was sent.", lambda seen: seen.age_s),
            ("takes_calls", "1: its status is ok.", lambda seen: seen.condition.status == "ok" and not seen.silent),
            ("share", "Of the calls that it would get otherwise: below 1 since its turns failed, 0 while they fail.",
             lambda seen: seen.condition.share),
            ("calls", "Calls in progress, as it reports.", lambda seen: seen.condition.calls),
            ("calls_coming", "Calls that were sent there and have not begun.", lambda seen: seen.pending),
            ("slots", "Calls that it may have at a time.", lambda seen: seen.condition.slots),
            ("predicted_latency_seconds", "95th percentile that one more call would bring.",
             lambda seen: seen.condition.predicted_ms / 1000),
            ("budget_seconds", "The turn latency that it promises.", lambda seen: seen.condition.budget_ms / 1000),
        )  # fmt: skip
        for name, help_text, value in figures:
            samples = [((self._directory, seen.pop, seen.condition.region), value(seen)) for seen in pops]
            yield at_present(GaugeMetricFamily, f"voicepipe_directory_pop_{name}", help_text, OF_A_POP, samples)
