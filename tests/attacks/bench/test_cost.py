"""Old beside new: figures of rounds, and checkouts that are none."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.attacks.bench.conditions import Turns
from tests.attacks.bench.pop import CHECKOUT
from tests.attacks.cost import FIGURES, Round, compared, is_checkout, main, table

TURNS = Turns(160, 150.0, 200.0, 160.0, 210.0, 0, 0, 0, 20, [], 60.0, 20.0, 0.0, 0.0)


def test_a_slower_one_is_known_however_the_machine_varies() -> None:
    """Rounds at which the machine is slow are slow for both."""
    rounds = [Round(replace(TURNS, cpu_s=20 * slow), replace(TURNS, cpu_s=24 * slow)) for slow in (1.0, 1.5, 1.1, 2.0)]
    old, new, times = compared(rounds, FIGURES["processor time a call, ms"])
    assert (old, new) == pytest.approx((1400, 1680))
    assert times
    assert times.value == pytest.approx(1.2)
    assert times.low > 1.19
    assert table(rounds).row_count == len(FIGURES)


def test_what_was_not_measured_is_not_compared() -> None:
    rounds = [Round(TURNS, replace(TURNS, latency_p50=None))]
    assert compared(rounds, FIGURES["turn latency p50, ms"]) == (0.0, 0.0, None)


def test_only_checkouts_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    is_checkout(CHECKOUT)
    assert main(["--old", str(tmp_path)]) == 2
    assert "no checkout of voicepipe" in capsys.readouterr().err.replace("\n", " ")
