"""The report, from results made by hand."""

import io
import json

import msgspec
import pytest
from rich.console import Console

from latency_probes.records import OverResult, TurnResult
from latency_probes.report import Rate, Summary, show, summarise
from latency_probes.run import Generator, Run


def turn(**fields: object) -> TurnResult:
    made: dict[str, object] = {
        "id": "finished-001-heart", "kind": "finished", "voice": "heart", "noise": "quiet", "text": "hello",
        "heard": "hello", "reply": "hello", "outcome": "right", "gap_ms": 200.0, "played_ms": 210.0, "word_errors": 0.0,
    }  # fmt: skip
    return msgspec.convert(made | fields, TurnResult)


def run_of(*turns: TurnResult) -> Run:
    return Run(list(turns), 3, 3, ["the server ended the call", "the server ended the call"], Generator(0.05, 3.0),
               {"answer": [20.0, 30.0]})  # fmt: skip


def summary_of(*turns: TurnResult) -> Summary:
    return summarise(run_of(*turns), 300, 300)


def test_only_answers_without_a_cut_in_have_a_heard_gap() -> None:
    row = summary_of(
        turn(gap_ms=100.0), turn(gap_ms=320.0, outcome="wrong"), turn(gap_ms=900.0, outcome="fallback"),
        turn(gap_ms=1.0, cut_in=True), turn(gap_ms=None, outcome="none"), turn(gap_ms=None, outcome="acknowledged"),
    ).rows[0]  # fmt: skip
    assert (row.gap_p50, row.turns) == (210.0, 6)
    assert (row.late.count, row.late.total) == (1, 2)
    assert (row.cut_ins.count, row.missed.count, row.fallback.count, row.wrong.count) == (1, 2, 1, 1)


def test_rows_are_split_by_confidence_and_by_noise() -> None:
    rows = summary_of(
        turn(flags={"confident": True}, labels={"speculation": "hit"}, stages={"asr": 10.0}),
        turn(flags={"confident": False}, labels={"speculation": "miss"}, stages={"asr": 20.0}, noise="pink_20"),
    ).rows
    assert [row.name for row in rows] == ["finished", "  confident", "  unsure", "  quiet", "  noisy"]
    assert rows[0].stages == {"asr": 15.0}
    assert (rows[0].speculation_hits.count, rows[0].speculation_hits.total) == (1, 2)


def test_a_rate_carries_its_count_and_upper_bound() -> None:
    assert str(summary_of(*[turn()] * 150).rows[0].cut_ins) == "0/150 0.0% (≤2.0%)"
    assert str(Rate(0, 0, None)) == "-"


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ([turn()], None),
        ([turn(gap_ms=400.0)], "p95 of the heard gap is 400 ms, over 300 ms"),
        ([turn(gap_ms=None, outcome="none")], "no finished utterance was answered"),
        ([turn(kind="pause_inside", place="copula", cut_in=number < 2) for number in range(50)], "cut-ins at pauses"),
        ([turn(kind="pause_inside", place="copula", cut_in=number < 1) for number in range(50)], None),
        ([turn(kind="pause_between", cut_in=True)], None),
    ],
)
def test_breaches(turns: list[TurnResult], said: str | None) -> None:
    found = summary_of(*turns).breaches
    assert (found == []) if said is None else (len(found) == 1 and said in found[0])


def test_overlays_are_counted_by_what_they_are() -> None:
    cut = OverResult(cut=True, answered=False, compared=True, ducked_ms=70.0, silent_ms=200.0, decided_ms=250.0)
    kept = OverResult(cut=False, answered=False, compared=True)
    rows = summary_of(
        turn(id="overlay-hum-001", kind="overlay", over=msgspec.to_builtins(cut)),
        turn(id="overlay-cough-001", kind="overlay", over=msgspec.to_builtins(kept)),
        turn(id="barge_in-001-heart", kind="barge_in"),
    ).over_rows
    assert [row.name for row in rows] == ["barge_in", "overlay", "  hum", "  cough"]
    assert [(row.cut.count, row.cut.total) for row in rows] == [(0, 0), (1, 2), (1, 1), (0, 1)]
    assert rows[1].ducked_p50 == 70.0


def test_the_report_is_printed_and_written() -> None:
    output = io.StringIO()
    run = run_of(turn(), turn(kind="overlay", id="overlay-hum-001"), turn(kind="pause_inside", place="number"))
    summary = summarise(run, 300, 300)
    show(run, summary, Console(file=output, width=200))
    for part in ("heard gap", "after number", "over the reply", "2 x the server ended the call", "3 ms late"):
        assert part in output.getvalue()
    assert json.loads(msgspec.json.encode(summary))["rows"][0]["gap_p50"] == 200.0


def test_people_and_synthetic_voices_have_rows_of_their_own() -> None:
    rows = summary_of(
        turn(), turn(kind="human"), turn(kind="human_pause"), turn(kind="human_es"), turn(kind="hard", noise="pink_20"),
        turn(kind="hard"), turn(kind="hard_pause", place="number"), turn(kind="hard_de"),
        turn(kind="hard_de_pause", place="preposition"),
    ).rows  # fmt: skip
    assert [row.name for row in rows] == [
        "finished", "synthetic, hard", "synthetic, hard, with a pause", "espeak-ng, German",
        "espeak-ng, German, with a pause", "human prompts", "human prompts with a pause", "human prompts, es",
    ]  # fmt: skip


def test_words_are_counted_together_and_all_of_an_unheard_turn_are_wrong() -> None:
    long, short = turn(text="one two three", word_errors=1 / 3), turn(text="one", word_errors=0.0)
    assert summary_of(long, short).rows[0].word_error_rate == pytest.approx(1 / 4)
    unheard = turn(text="one two", word_errors=None)
    assert summary_of(long, short, unheard).rows[0].word_error_rate == pytest.approx(3 / 6)
    assert summary_of(unheard).rows[0].word_error_rate is None
