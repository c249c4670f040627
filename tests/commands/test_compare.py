"""`voicepipe pops --compare`: figures of two versions, and a sentence for each difference."""

from typing import Any

import pytest
from rich.console import Console

from voicepipe.base.errors import ConfigError
from voicepipe.commands.compare import percent, table, tally_of, verdict
from voicepipe.observe.tally import Tally, added, bucket_of, grown, middle_ms
from voicepipe.observe.version_comparison import compared


def call(ms: float, turns: int = 8, cut_ins: int = 0, missed: int = 0) -> Tally:
    """Whose turns all took so long."""
    bucket, in_time = bucket_of(ms), turns - missed
    return Tally(
        turns=turns, cut_ins=cut_ins, missed=missed, calls=1, latencies={bucket: in_time},
        latency_by_call=grown(0, 0, in_time, in_time * round(middle_ms(bucket))),
        cut_ins_by_call=grown(0, 0, turns, cut_ins), missed_by_call=grown(0, 0, turns, missed),
    )  # fmt: skip


def calls(number: int, ms: float, **turn: int) -> Tally:
    return added([call(ms + spread % 5, **turn) for spread in range(number)])


def test_a_slower_version_is_named_with_how_much() -> None:
    told = [*verdict("1.0", "1.1", compared(calls(60, 200), calls(60, 400)))]
    assert len(told) == 1 and told[0].startswith("1.1 is slower by ")
    told = [*verdict("1.1", "1.0", compared(calls(60, 400), calls(60, 200)))]
    assert len(told) == 1 and told[0].startswith("1.0 is quicker by ")


def test_where_nothing_differs_that_is_said() -> None:
    told = [*verdict("1.0", "1.1", compared(calls(60, 200), calls(60, 200)))]
    assert told == ["No difference seen in 480 turns of 1.1."]


def test_too_few_turns_are_not_compared() -> None:
    told = [*verdict("1.0", "1.1", compared(calls(60, 200), calls(2, 900)))]
    assert len(told) == 1 and told[0].startswith("1.1 has too few turns yet: 16 of ")


def test_the_table_has_a_line_for_each_figure() -> None:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(table("1.0", "1.1", compared(calls(60, 200), calls(50, 400))))
    lines = [line.split() for line in captured.get().splitlines()]
    assert lines[1][:3] == ["turns", "480", "400"]
    p50 = next(line for line in lines if line[:2] == ["p50", "ms"])
    assert int(p50[4]) == int(p50[3]) - int(p50[2]) > 150
    assert {"p95", "mean", "cut-ins", "failures", "refusals"} <= {line[0] for line in lines if line}


ROWS: list[dict[str, Any]] = [
    {"pop": "fra1", "version": "1.0", "hour": {"turns": 5}},
    {"pop": "fra2", "version": "1.0", "hour": {"turns": 7}},
    {"pop": "iad1", "version": "1.1", "hour": None},
]


@pytest.mark.parametrize(("name", "turns"), [("1.0", 12), ("fra2", 7), ("1.1", 0)])
def test_pops_of_a_version_are_added_up_and_one_is_known_by_its_name(name: str, turns: int) -> None:
    assert tally_of(name, [*ROWS]).turns == turns


def test_a_name_that_no_pop_has() -> None:
    with pytest.raises(ConfigError, match=r"no PoP is of version '2\.0', and none has this name; versions: 1\.0, 1\.1"):
        tally_of("2.0", [*ROWS])


def test_shares_are_percent() -> None:
    assert [percent(share) for share in (0, 0.0123, 1)] == ["0.0 %", "1.2 %", "100.0 %"]
