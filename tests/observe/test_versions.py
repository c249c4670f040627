"""Two versions side by side: which difference is named, and how often one that there is not."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from voicepipe.commands import compare
from voicepipe.commands.compare import tally_of, verdict
from voicepipe.directory.tally import Tally, added, bucket_of, middle_ms
from voicepipe.errors import ConfigError
from voicepipe.observe.versions import compared

RUNS = 300
HUMPS = [{"slow": 0.2, "spread": 1.0}, {"slow": 0.5, "spread": 1.0}, {"slow": 0.5, "spread": 1.75}]
"""Some turns take about 950 ms and the others about 200."""


def tally(
    lots: np.random.Generator, turns: int, *, slow: float, spread: float, shift_ms: float = 0.0, fails: float = 0.003
) -> Tally:
    """Of eight turns a call; 3 % of the turns are cut-ins, and 1 % of the calls are refused."""
    late = lots.normal(950, 120 * spread, turns)
    ms = np.where(lots.random(turns) < slow, late, lots.normal(200, 40 * spread, turns)).clip(60) + shift_ms
    calls, missed = turns // 8, int(lots.binomial(turns, fails))
    return Tally(
        turns=turns,
        cut_ins=int(lots.binomial(turns, 0.03)),
        missed=missed,
        calls=calls,
        refused=int(lots.binomial(calls, 0.01)),
        latencies=dict(Counter(bucket_of(one) for one in ms[missed:])),
    )


@pytest.mark.parametrize("humps", HUMPS)
def test_a_version_that_is_150_ms_slower_is_named_within_100_turns(humps: dict[str, float]) -> None:
    lots = np.random.default_rng(1)
    named = [compared(tally(lots, 900, **humps), tally(lots, 100, shift_ms=150, **humps)) for _ in range(RUNS)]
    assert sum(one.is_slower for one in named) >= 0.95 * RUNS
    assert sum(one.shift.least <= 150 <= one.shift.most for one in named) >= 0.98 * RUNS
    assert np.median([one.shift.more for one in named]) == pytest.approx(150, abs=15)


@pytest.mark.parametrize("humps", HUMPS)
def test_a_version_that_fails_one_turn_in_ten_is_named_within_100_turns(humps: dict[str, float]) -> None:
    lots = np.random.default_rng(2)
    named = [compared(tally(lots, 900, **humps), tally(lots, 100, fails=0.1, **humps)) for _ in range(RUNS)]
    assert sum([rate.what for rate in one.worse] == ["failures"] for one in named) >= 0.95 * RUNS


@pytest.mark.parametrize("humps", HUMPS)
@pytest.mark.parametrize("turns", [(450, 50), (900, 100), (9000, 1000)])
def test_a_version_that_is_equal_is_hardly_ever_named(humps: dict[str, float], turns: tuple[int, int]) -> None:
    lots, runs = np.random.default_rng(3), 2 * RUNS
    named = sum(compared(*(tally(lots, count, **humps) for count in turns)).is_worse for _ in range(runs))
    assert named <= 0.015 * runs


def test_an_operator_who_looks_every_ten_turns_is_hardly_ever_misled() -> None:
    lots, misled = np.random.default_rng(4), 0
    for _ in range(RUNS):
        old, new, seen = Tally(), Tally(), False
        for _ in range(10):
            old = added([old, tally(lots, 90, **HUMPS[1])])
            new = added([new, tally(lots, 10, **HUMPS[1])])
            seen = seen or compared(old, new).is_worse
        misled += seen
    assert misled <= 0.03 * RUNS


def test_latencies_are_known_by_a_few_percent() -> None:
    for ms in (0.0, 1.0, 63.0, 200.0, 949.0, 12_000.0):
        assert middle_ms(bucket_of(ms)) == pytest.approx(max(1.0, ms), rel=0.03)


def same(turns: int, ms: float = 200.0, **counts: int) -> Tally:
    return Tally(turns=turns, calls=turns // 4, latencies={bucket_of(ms): turns}, **counts)


@pytest.mark.parametrize(("old", "new", "said"), [
    (same(900), same(84), ["No difference seen in 84 turns of new."]),
    (same(900), same(8), ["new has too few turns yet: 8 of 20."]),
    (Tally(), Tally(), ["old has too few turns yet: 0 of 20.", "new has too few turns yet: 0 of 20."]),
    (same(900, missed=3), same(100, missed=10), ["new fails more: 10.0 % against 0.3 % of turns."]),
    (same(900), same(100, refused=20), ["new refuses more: 44.4 % against 0.0 % of calls."]),
    (same(900, cut_ins=300), same(900), ["new cuts in on fewer callers: 0.0 % against 33.3 % of turns."]),
    (same(20_000), same(20_000, missed=40), ["No difference seen in 20000 turns of new."]),
])  # fmt: skip
def test_what_is_said(old: Tally, new: Tally, said: list[str]) -> None:
    assert [*verdict("old", "new", compared(old, new))] == said


def test_how_much_slower_is_said_with_bounds_and_a_few_turns_that_are_very_slow_are_seen() -> None:
    old = Tally(turns=900, latencies={bucket_of(ms): 90 for ms in range(150, 650, 50)})
    new = Tally(turns=100, latencies={bucket_of(ms + 150): 10 for ms in range(150, 650, 50)})
    [slower] = verdict("1", "2", compared(old, new))
    assert slower.startswith("2 is slower by 14") and slower.endswith(" ms).")
    stalls = Tally(turns=100, latencies={bucket_of(200): 80, bucket_of(3000): 20})
    [sentence] = verdict("1", "2", compared(same(900), stalls))
    assert sentence.startswith("Some turns of 2 take much longer: 5")


def test_versions_are_added_up_and_a_pop_is_compared_by_its_name() -> None:
    hour: dict[str, Any] = {"turns": 5, "calls": 2, "latencies": {"100": 4}}
    rows: list[Mapping[str, Any]] = [
        {"pop": "fra1", "version": "1", "hour": hour},
        {"pop": "fra2", "version": "1", "hour": {**hour, "latencies": {"100": 1, "101": 2}}},
        {"pop": "iad1", "version": "2", "hour": hour},
        {"pop": "old1", "hour": None},
    ]
    assert tally_of("1", rows) == Tally(turns=10, calls=4, latencies={100: 5, 101: 2})
    assert tally_of("iad1", rows).turns == 5
    assert tally_of("old1", rows) == Tally()
    with pytest.raises(ConfigError, match="versions: 1, 2"):
        tally_of("3", rows)


@pytest.mark.parametrize(("missed", "status"), [(0, 0), (10, 1)])
def test_the_exit_status_says_whether_the_second_one_is_worse(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missed: int, status: int
) -> None:
    hours = {"1": same(900), "2": same(100, missed=missed)}
    pops = [{"pop": f"fra{version}", "version": version, "hour": msgspec.to_builtins(hour, str_keys=True)}
            for version, hour in hours.items()]  # fmt: skip
    crashed = {**pops[1], "pop": "fra3", "age_s": 60.0}
    monkeypatch.setattr(compare, "asked", lambda *_: {"pops": pops, "lost": [crashed]})
    assert compare.run("1", "2", "http://directory", "KEY") == status
    said = capsys.readouterr().out
    assert said.splitlines()[1].split() == ["turns", "900", "200"], "one that crashed counts"
    assert ("2 fails more" in said) == bool(status)
