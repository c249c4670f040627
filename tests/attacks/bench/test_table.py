"""What runs come to: medians, sums, and what must not be."""

from io import StringIO

from msgspec.structs import replace
from rich.console import Console

from latency_probes.records import TurnResult
from tests.attacks.bench.conditions import Result, Turns, noticed, plans
from tests.attacks.bench.pop import Held
from tests.attacks.bench.table import breaches, show, worse

HELD = Held(100.0, 20, 10, 8, 1.0, 0.0, 0.0)


def turns(p95: float | None = 200.0) -> Turns:
    return Turns(304, 150.0, p95, 160.0, p95, 0, 0, 0, 38, [], 100.0, 30.0, 0.0, 0.0)


def result(later: float = 0.0, *, megabytes: tuple[float, ...] = (100, 110, 112, 113, 114, 115)) -> Result:
    held = [replace(HELD, rss_mb=rss) for rss in megabytes]
    return Result("flood", turns(), turns(200.0 + later), held, {"HTTP 429": 7}, [], False)


def turn(outcome: str = "right", *, cut_in: bool = False, status: str = "completed", ms: float = 150.0) -> TurnResult:
    return TurnResult("", "finished", "slt", "quiet", "", "", "", outcome, gap_ms=ms, cut_in=cut_in, status=status,
                      stages={"turn_latency": ms - 10})  # fmt: skip


def test_a_run_that_is_slow_once_does_not_decide() -> None:
    runs = [result(10), result(400), result(20)]
    assert worse(runs, lambda turns: turns.latency_p95) == 20
    assert not breaches(runs)


def test_what_must_not_be_is_told() -> None:
    late = [result(60), result(70), result(10)]
    assert breaches(late) == ["flood: turn latency p95 is worse by +60 ms (at most 50 ms)"]
    grown = [result(megabytes=(100, 110, 0, 0, 0, 131))]
    assert breaches(grown) == ["flood: memory grew by 21 MB from the first to the fifth (at most 20)"]
    hurt = replace(result(), beside=replace(turns(), cut=1, fallback=2, missed=3, failures=["refused"]))
    assert [line.split(": ")[1].split(" beside")[0] for line in breaches([hurt])] == [
        "1 turns cut", "2 turns answered by the fallback", "3 turns missed", "1 calls that failed",
    ]  # fmt: skip
    failed = [replace(result(), errors=["flood: KeyError()"])]
    assert "the attack itself failed" in breaches(failed)[0]


def test_a_pop_that_ended_is_told_whatever_else_there_is() -> None:
    ended = replace(result(), held=[HELD], ended=True, beside=turns(None))
    found = breaches([ended])
    assert "flood: the PoP ended in 1 of 1 runs" in found
    assert any("worse by -" in line for line in found), "no turn has a latency: that is not as it must be"


def test_the_table_shows_every_attack_and_what_it_was_told() -> None:
    console = Console(width=250, file=StringIO(), record=True)
    assert show({"flood": [result(1), result(2), result(3)]}, console) == []
    shown = console.export_text()
    assert "912 / 912" in shown
    assert "+2" in shown
    assert "110, 115" in shown
    assert "flood sent 0.0 Mbit/s and was told: 21 x HTTP 429" in shown


def test_turns_are_counted_by_what_became_of_them() -> None:
    results = [
        turn(),
        turn("fallback"),
        turn("none"),
        turn("acknowledged"),
        turn(status="cancelled"),
        turn(cut_in=True),
    ]
    after = replace(HELD, cpu_s=6.0, waited_s=1.0)
    seen = noticed(results, 2, [], 10.0, HELD, after)
    assert (seen.turns, seen.fallback, seen.missed, seen.cut) == (6, 1, 2, 2)
    assert (seen.latency_p50, seen.gap_p50) == (140.0, 150.0)
    assert (seen.cpu, seen.waited) == (0.5, 0.1)
    assert noticed([], 0, ["refused"], 1.0, HELD, None).latency_p95 is None


def test_turns_are_spread_over_eight_calls_at_a_time() -> None:
    assert [len(plan.turns) for plan in plans(8)] == [1] * 8
    assert [len(plan.turns) for plan in plans(100)] == [7] * 16
    assert [len(plan.turns) for plan in plans(300)] == [8] * 40
