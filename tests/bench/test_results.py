"""Samples as percentiles, and how many calls are in time."""

from typing import Any

from voicepipe.bench import results
from voicepipe.bench.results import Figure, FiguresResult, Samples, calls_in_time, merged


def result(calls: int, *latencies: float, gaps: bool = True, **more: Any) -> FiguresResult:
    return FiguresResult(calls, gaps, [Samples({results.LATENCY: [each]}, turns=1) for each in latencies], **more)


def test_calls_in_time() -> None:
    few, more, late = result(1, 160.0, 200.0), result(8, 160.0, 300.0), result(32, 160.0, 400.0)
    assert calls_in_time([few, more, late], 300) == 8
    assert calls_in_time([few, late, result(64, 160.0)], 300) == 1
    assert calls_in_time([more, result(8, 400.0, gaps=False)], 300) == 0
    assert calls_in_time([result(1)], 300) == 0


def test_samples_are_percentiles_in_milliseconds() -> None:
    samples = Samples()
    for ms in range(1, 102):
        samples.note(results.ASR_FINAL, ms / 1000)
    assert samples.figure(results.ASR_FINAL) == Figure(51.0, 96.0, 100.0, 101.0, 101)
    assert samples.figure(results.TTS_FIRST) is None


def test_a_turn_s_compute_makes_its_latency() -> None:
    samples = Samples()
    samples.turn(0.05)
    samples.turn(0.2)
    assert samples.times == {results.COMPUTE: [50.0, 200.0], results.LATENCY: [160.0, 280.0]}


def test_runs_are_merged_with_all_their_samples() -> None:
    runs = [Samples({"a": [1.0]}, turns=1), Samples({"a": [2.0], "b": [3.0]}, turns=2, unanswered=1)]
    assert merged(runs) == Samples({"a": [1.0, 2.0], "b": [3.0]}, turns=3, unanswered=1)
    assert runs[0].times == {"a": [1.0]}, "which stay as they are"


def test_a_turn_that_was_not_answered_is_late() -> None:
    in_time = [160.0] * 19
    assert FiguresResult(1, True, [Samples({results.LATENCY: in_time}, turns=19)]).in_time(300) is True
    assert FiguresResult(1, True, [Samples({results.LATENCY: in_time}, turns=21, unanswered=2)]).in_time(300) is False
    assert FiguresResult(1, True, [Samples()]).in_time(300) is None


def test_the_spread_is_that_of_the_rounds() -> None:
    assert result(1, 160.0, 200.0, 180.0).spread(results.LATENCY) == (160.0, 200.0)
    assert result(1).spread(results.LATENCY) is None
