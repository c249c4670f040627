"""The measurement itself: calls come and go while their PoP is upgraded. No figures are asserted."""

import pytest

from latency_probes.components import upgrade
from latency_probes.components.upgrade import SetupFigures, UpgradeResult, _Setup

pytestmark = pytest.mark.e2e


async def test_calls_come_and_go_while_their_pop_is_upgraded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "CALL_S", 4.0)
    monkeypatch.setattr(upgrade, "BETWEEN_S", 1.0)
    assert await upgrade.run(2, 1, None) == 0


def test_set_ups_beside_an_upgrade_are_counted_apart() -> None:
    setups = [_Setup(at, 10.0 * at, refused=at == 5.0) for at in (1.0, 3.0, 5.0, 20.0)]
    result = UpgradeResult(setups, cut=1, silent_s=[0.02, 2.5], upgrades=[(2.0, 4.0)])
    figures = result.figures()
    assert figures.beside == SetupFigures(2, 1, 30.0, 30.0)
    assert (figures.apart.calls, figures.apart.refused) == (2, 0)
    assert (figures.calls, figures.cut, figures.longest_pause_ms, figures.upgrades_s) == (2, 1, 2500.0, [2.0])
