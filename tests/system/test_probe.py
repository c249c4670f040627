"""A probe beside a fleet of which one PoP is slow and one is killed: alerts of a real Prometheus name them."""

from pathlib import Path

import pytest

from tests.directory.keys import needs_openssl
from tests.directory.nats_server import needs_nats
from tests.observe.prometheus import Prometheus, installed
from tests.probe.probed_fleet import DEAD, SLOW, firing, is_called, probed_fleet, wait, watched

pytestmark = [pytest.mark.e2e, needs_nats, needs_openssl, installed]
QUICK = "every_s = 15\nagain_s = 2\ncalls = 6\nunsure_ms = 500"
BUDGET_MS = 1500
"""Only a model that takes 2.5 s misses it, on a slow machine too."""


def test_alerts_name_the_slow_pop_with_its_stage_and_the_dead_one(tmp_path: Path) -> None:
    with (
        probed_fleet(tmp_path, {SLOW: 2500}) as fleet,
        watched(fleet, fleet.probe(QUICK, BUDGET_MS), "1s") as prometheus,
    ):
        wait(lambda: is_called(prometheus, 6), "by every way and door")
        wait(lambda: named(prometheus, "ProbeLate", SLOW), "the slow one")
        [late] = named(prometheus, "ProbeLate", SLOW)
        assert (late["stage"], late["by"], late["way"], late["target"]) == ("llm", "websocket", "straight", "fleet")
        assert not named(prometheus, "ProbeFails", DEAD)
        fleet.kill(DEAD)
        wait(lambda: named(prometheus, "ProbeFails", DEAD), "the dead one")
        [fails] = named(prometheus, "ProbeFails", DEAD)
        assert (fails["fault"], fails["severity"]) == ("connect", "page")
        assert not named(prometheus, "ProbeFails", "fra") and not named(prometheus, "ProbeSilent", "")


def named(prometheus: Prometheus, alert: str, pop: str) -> list[dict[str, str]]:
    return [one for one in firing(prometheus) if (one["alertname"], one.get("pop", "")) == (alert, pop)]
