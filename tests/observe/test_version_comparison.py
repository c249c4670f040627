"""Two versions side by side: which difference is named, and how often one that there is not."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

from voicepipe.base.errors import ConfigError
from voicepipe.base.secret_source import SecretSource
from voicepipe.commands import compare
from voicepipe.commands.compare import tally_of, verdict
from voicepipe.commands.remote_server import RemoteServer
from voicepipe.observe.tally import Tally, added, bucket_of, grown, middle_ms
from voicepipe.observe.version_comparison import Floats, compared

RUNS = 100

Lots = np.random.Generator


def humps(lots: Lots, turns: int, slow: float, spread: float = 1.0) -> Floats:
    """Latencies of one call."""
    late = lots.normal(950, 120 * spread, turns)
    return np.where(lots.random(turns) < slow, late, lots.normal(200, 40 * spread, turns)).clip(60)


def alike(lots: Lots, turns: int) -> Floats:
    """Callers differ in how often the draft of an answer is right."""
    return humps(lots, turns, lots.beta(1.0, 2.3))


def one_hump(lots: Lots, turns: int) -> Floats:
    """Callers differ in how long their answers take."""
    return np.exp(lots.normal(np.log(350) + lots.normal(0, 0.3), 0.4, turns))


def tally(
    lots: Lots, turns: int, of_call: Callable[[Lots, int], Floats], shift_ms: float = 0.0, fails: float = 0.003
) -> Tally:
    """Of about eight turns a call; 3 % of the turns are cut-ins, and 1 % of the calls are refused."""
    calls = []
    while turns:
        calls.append(its := min(turns, 1 + int(lots.poisson(7))))
        turns -= its
    parts = [
        call_of(of_call(lots, its) + shift_ms, int(lots.binomial(its, fails)), int(lots.binomial(its, 0.03)))
        for its in calls
    ]
    return added([*parts, Tally(refused=int(lots.binomial(len(calls), 0.01)))])


def call_of(ms: Floats, missed: int = 0, cut_ins: int = 0) -> Tally:
    """The last `missed` of its turns are failures."""
    turns, buckets = len(ms), [bucket_of(one) for one in ms[: len(ms) - missed]]
    took = sum(round(middle_ms(bucket)) for bucket in buckets)
    return Tally(
        turns=turns, cut_ins=cut_ins, missed=missed, calls=1, latencies=dict(Counter(buckets)),
        latency_by_call=grown(0, 0, len(buckets), took),
        missed_by_call=grown(0, 0, turns, missed), cut_ins_by_call=grown(0, 0, turns, cut_ins),
    )  # fmt: skip


# Calls of one kind, or of which each has its own; how many turns of the new version name it in most trials.
INDEPENDENT = [partial(humps, slow=0.2), partial(humps, slow=0.5), partial(humps, slow=0.5, spread=1.75)]
CLUSTERED = [alike, one_hump]
OfCall = Callable[[Lots, int], Floats]


@pytest.mark.parametrize("of_call", INDEPENDENT)
def test_a_version_that_is_150_ms_slower_is_named_within_100_turns(of_call: OfCall) -> None:
    lots = np.random.default_rng(1)
    named = [compared(tally(lots, 900, of_call), tally(lots, 100, of_call, shift_ms=150)) for _ in range(RUNS)]
    assert sum(one.is_slower for one in named) >= 0.95 * RUNS
    assert sum(one.shift.least <= 150 <= one.shift.most for one in named) >= 0.98 * RUNS
    assert np.median([one.shift.more for one in named]) == pytest.approx(150, abs=15)


@pytest.mark.parametrize("of_call", CLUSTERED)
def test_where_turns_of_a_call_are_alike_it_is_named_then_in_most_runs(of_call: OfCall) -> None:
    lots = np.random.default_rng(1)
    named = [compared(tally(lots, 900, of_call), tally(lots, 100, of_call, shift_ms=150)) for _ in range(RUNS)]
    assert sum(one.is_slower for one in named) >= 0.6 * RUNS
    assert sum(one.shift.least <= 150 <= one.shift.most for one in named) >= 0.98 * RUNS


@pytest.mark.parametrize("of_call", [*INDEPENDENT, *CLUSTERED])
def test_a_version_that_fails_one_turn_in_ten_is_named_within_100_turns(of_call: OfCall) -> None:
    lots = np.random.default_rng(2)
    named = [compared(tally(lots, 900, of_call), tally(lots, 100, of_call, fails=0.1)) for _ in range(RUNS)]
    assert sum("failures" in [rate.what for rate in one.worse] for one in named) >= 0.95 * RUNS


@pytest.mark.parametrize("of_call", [*INDEPENDENT, *CLUSTERED])
@pytest.mark.parametrize("turns", [(300, 30), (900, 100), (100, 900)])
def test_a_version_that_is_equal_is_hardly_ever_named(of_call: OfCall, turns: tuple[int, int]) -> None:
    lots = np.random.default_rng(3)
    named = sum(compared(*(tally(lots, count, of_call) for count in turns)).is_worse for _ in range(RUNS))
    assert named <= 0.02 * RUNS


@pytest.mark.parametrize("of_call", [INDEPENDENT[1], *CLUSTERED])
def test_an_operator_who_looks_every_ten_turns_is_hardly_ever_misled(of_call: OfCall) -> None:
    lots, misled = np.random.default_rng(4), 0
    for _ in range(RUNS // 2):
        old, new, seen = Tally(), Tally(), False
        for _ in range(10):
            old = added([old, tally(lots, 90, of_call)])
            new = added([new, tally(lots, 10, of_call)])
            seen = seen or compared(old, new).is_worse
        misled += seen
    assert misled <= 0.03 * RUNS / 2


@pytest.mark.parametrize("turns", [(900, 100), (100, 900)])
def test_turns_that_are_rare_and_very_long_mislead_nobody(turns: tuple[int, int]) -> None:
    def rare(lots: Lots, count: int) -> Floats:
        return np.where(lots.random(count) < 0.01, 20_000.0, humps(lots, count, 0.3))

    lots = np.random.default_rng(5)
    named = sum(compared(*(tally(lots, count, rare) for count in turns)).is_slower for _ in range(RUNS))
    assert named <= 0.01 * RUNS


def test_one_call_all_of_whose_turns_fail_shows_no_worse_version_and_eight_that_have_one_such_turn_do() -> None:
    ms = np.full(8, 200.0)
    old = added([call_of(ms)] * 100)
    one_call = added([call_of(ms)] * 11 + [call_of(ms, missed=8)])
    eight_calls = added([call_of(ms)] * 4 + [call_of(ms, missed=1)] * 8)
    assert one_call.missed == eight_calls.missed
    assert not compared(old, one_call).is_worse
    assert compared(old, eight_calls).is_worse


def test_latencies_are_known_by_a_few_percent() -> None:
    for ms in (0.0, 1.0, 63.0, 200.0, 949.0, 12_000.0):
        assert middle_ms(bucket_of(ms)) == pytest.approx(max(1.0, ms), rel=0.03)


def same(turns: int, ms: float = 200.0, **counts: int) -> Tally:
    """Four turns a call; what is counted is spread over all calls."""
    calls, refused = turns // 4, counts.pop("refused", 0)
    parts = []
    for number in range(calls):
        its = {what: count // calls + (number < count % calls) for what, count in counts.items()}
        parts.append(call_of(np.full(4, ms), its.get("missed", 0), its.get("cut_ins", 0)))
    return added([*parts, Tally(refused=refused)])


@pytest.mark.parametrize(("old", "new", "said"), [
    (same(900), same(84), ["No difference seen in 84 turns of new."]),
    (same(900), same(8), ["new has too few turns yet: 8 of 20."]),
    (same(900), added([call_of(np.full(10, 200.0))] * 4), ["new has too few calls yet: 4 of 5."]),
    (Tally(), Tally(), ["old has too few turns yet: 0 of 20.", "new has too few turns yet: 0 of 20."]),
    (same(900, missed=3), same(100, missed=10), ["new fails more: 10.0 % against 0.3 % of turns."]),
    (same(900), same(100, refused=20), ["new refuses more: 44.4 % against 0.0 % of calls."]),
    (same(900, cut_ins=300), same(900), ["new cuts in on fewer callers: 0.0 % against 33.3 % of turns."]),
    (same(20_000), same(20_000, missed=40), ["No difference seen in 20000 turns of new."]),
])  # fmt: skip
def test_what_is_said(old: Tally, new: Tally, said: list[str]) -> None:
    assert [*verdict("old", "new", compared(old, new))] == said


def test_how_much_slower_is_said_with_bounds_and_a_few_turns_that_are_very_slow_are_seen() -> None:
    ms = np.linspace(150, 600, 10)
    [slower] = verdict("1", "2", compared(added([call_of(ms)] * 90), added([call_of(ms + 150)] * 10)))
    assert slower.startswith("2 is slower by 14") and slower.endswith(" ms).")
    stalls = np.array([200.0] * 8 + [3000.0] * 2)
    [sentence] = verdict("1", "2", compared(same(900), added([call_of(stalls)] * 10)))
    assert sentence.startswith("2 is slower in the mean, by 5")
    assert sentence.endswith(" ms); turn against turn no difference is seen.")


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
    monkeypatch.setattr(RemoteServer, "asked", lambda *_: {"pops": pops, "lost": [crashed]})
    directory = RemoteServer(url="http://directory", key=SecretSource())
    assert compare.run("1", "2", directory) == status
    said = capsys.readouterr().out
    assert said.splitlines()[1].split() == ["turns", "900", "200"], "one that crashed counts"
    assert ("2 fails more" in said) == bool(status)
