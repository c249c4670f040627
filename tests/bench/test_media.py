"""The measurement itself: both far ends answer, hear and speak. No figures are asserted."""

import pytest

from voicepipe.bench.media import KINDS, measured

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("kind", KINDS)
async def test_calls_are_held_both_ways(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voicepipe.bench.media.WARM_UP_S", 0.5)
    cost = await measured(kind, calls=2, seconds=2.0)
    assert cost.cpu_s > 0 and cost.wall_s > 1
    assert cost.heard > 20 and cost.sent > 20
