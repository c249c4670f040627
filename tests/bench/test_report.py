"""What was found, as tables and as JSON."""

import json
import sys

import pytest
from rich.console import Console

from voicepipe.base.figures import for_tables
from voicepipe.bench import results
from voicepipe.bench.report import BenchReport
from voicepipe.bench.results import FiguresResult, Samples


def test_the_report() -> None:
    rounds = [
        Samples({results.ASR_FINAL: [8.0, 10.0], results.LATENCY: [160.0], results.CLOCK: [0.5, 30.0]}, turns=1),
        Samples({results.ASR_FINAL: [9.0], results.LATENCY: [340.0]}, turns=2, unanswered=1),
    ]
    alone = Samples({results.ASR_FINAL: [7.0]})
    made = [
        FiguresResult(1, True, rounds, alone, (1200, 1980)), FiguresResult(1, False, rounds[:1], alone),
    ]  # fmt: skip
    engines = {"llm": "vllm: a model", "asr": "whisper"}
    report = BenchReport("a GPU", {"torch": "2.11.0"}, engines, 30.0, made, ["VLLM::EngineCor"])
    lines = report.markdown().splitlines()
    assert lines[0] == (
        "a GPU. LLM: vllm: a model. ASR: whisper. processes beside this one: VLLM::EngineCor. torch 2.11.0."
    )
    assert "|  | 1 call, alone | 1 call | 1 call, no gaps |" in lines
    assert "| ASR, final | 7.0/7.0/7.0 | 9.0/9.9/10.0 | 9.0/9.9/10.0 |" in lines
    assert "| LLM, first token |  |  |  |" in lines
    assert "| turn latency |  | 250/331/338 | 160/160/160 |" in lines
    assert "| turn latency, p95 of the rounds |  | 160-340 | 160-160 |" in lines
    assert "| p95 within 300 ms |  | no | yes |" in lines
    assert "| turns not answered |  | 1 | 0 |" in lines
    assert "| media clock late, p50/p95/p99/max |  | 15/29/30/30 | 15/29/30/30 |" in lines
    assert "| GPU's clock, MHz |  | 1200-1980 |  |" in lines
    assert "at most 300 ms: 0 (tried: 1)" in lines[-1]
    told = json.loads(json.dumps(report.json()))
    assert told["calls_in_time"] == 0 and told["processes"] == ["VLLM::EngineCor"]
    assert told["results"][0]["together"]["ASR, final"] == {
        "p50_ms": 9.0, "p95_ms": 9.9, "p99_ms": 9.98, "max_ms": 10.0, "count": 3
    }  # fmt: skip
    assert told["results"][0]["p95_ms_of_rounds"]["turn latency"] == [160.0, 340.0]
    assert report.tables(Console(width=200))[0].row_count == len(report.rows())


def many() -> BenchReport:
    """A report whose table is wider than terminals are."""
    samples = Samples({results.LATENCY: [1160.0], results.CLOCK: [0.34, 25.0, 326.0, 661.0]}, turns=1)
    made = [FiguresResult(calls, gaps, [samples], samples) for calls in (1, 8, 32) for gaps in (True, False)]
    return BenchReport("a GPU", {"torch": "2.11.0"}, {"llm": "a model"}, 30.0, made)


def shown(report: BenchReport, console: Console) -> str:
    with console.capture() as captured:
        for table in report.tables(console):
            console.print(table)
    return captured.get()


def test_a_table_that_goes_to_a_file_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    said = shown(many(), for_tables())
    assert "…" not in said and "..." not in said
    header = next(line for line in said.splitlines() if "1 call, alone" in line)
    assert all(f"{calls} calls{more}" in header for calls in (8, 32) for more in (", alone", ", no gaps"))
    assert "176/611/651/661" in said


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_that_is_too_narrow_has_a_table_for_each_number_of_calls(width: int) -> None:
    wide, narrow = (shown(many(), Console(width=columns, force_terminal=True)) for columns in (400, width))
    assert wide.count("engines on a GPU") == 1 and narrow.count("engines on a GPU") == 3
    assert "…" not in narrow and "176/611/651/661" in narrow
    assert narrow.count("Calls of which 95 in 100") == 1 and "tried: 1, 8, 32" in narrow
