"""The measurement itself: both far ends answer, hear and speak. No figures are asserted."""

import pytest

from latency_probes.components.media import KINDS, Cost, measured, of_aiortc


def test_the_ratio_is_of_each_run() -> None:
    """The second was on a slower machine, and its voicepipe was measured for longer."""
    runs = [
        {"voicepipe": Cost(1.0, 10.0, 0, 0, 0), "aiortc": Cost(4.0, 10.0, 0, 0, 0)},
        {"voicepipe": Cost(4.0, 20.0, 0, 0, 0), "aiortc": Cost(10.0, 10.0, 0, 0, 0)},
        {"voicepipe": Cost(3.0, 10.0, 0, 0, 0), "aiortc": Cost(6.0, 10.0, 0, 0, 0)},
    ]
    ratio = of_aiortc(runs)
    assert (ratio.median, ratio.least, ratio.most) == pytest.approx((0.25, 0.2, 0.5))


@pytest.mark.e2e
@pytest.mark.parametrize("kind", KINDS)
async def test_calls_are_held_both_ways(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latency_probes.components.media.WARM_UP_S", 0.5)
    cost = await measured(kind, calls=2, seconds=2.0)
    assert cost.cpu_s > 0 and cost.wall_s > 1
    assert cost.heard > 20 and cost.sent > 20
