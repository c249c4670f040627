"""All runs of one measurement, in virtual time."""

import pytest

from tests.bench.instant import SOUND, instant
from voicepipe.bench import results
from voicepipe.bench.measure import BenchOptions, measured

OPTIONS = BenchOptions(calls=(1, 2), seconds=40.0, rounds=2)
pytestmark = [pytest.mark.virtual_time, pytest.mark.usefixtures("virtual")]


async def test_each_number_of_calls_is_measured_together_and_each_stage_alone() -> None:
    said: list[str] = []
    found = await measured(instant(), OPTIONS, SOUND, said.append)
    assert [(result.calls, result.gaps) for result in found] == [(1, True), (1, False), (2, True), (2, False)]
    for result in found:
        assert len(result.rounds) == 2 and all(each.turns for each in result.rounds)
        assert set(result.alone.times) == {*results.STAGES, results.CLOCK}
        assert set(result.together.times) == set(results.NAMES)
    assert said[:5] == [
        "1 call: ASR by itself, 20 s",
        "1 call: LLM by itself, 20 s",
        "1 call: TTS by itself, 20 s",
        "1 call: the media clock by itself, 20 s",
        "1 call, with idle gaps: round 1, 20 s",
    ]
    assert said[-1] == "2 calls, without idle gaps: round 2, 20 s"


async def test_the_rounds_of_a_measurement_differ_and_another_has_the_same() -> None:
    engines = instant()
    once, again = [
        (
            await measured(
                engines, BenchOptions(calls=(3,), seconds=300.0, rounds=2, kinds=(False,)), SOUND, lambda said: None
            )
        )[0].rounds
        for _ in range(2)
    ]
    finals = [[len(each.times[results.ASR_FINAL]) for each in rounds] for rounds in (once, again)]
    assert finals[0] == finals[1] and finals[0][0] != finals[0][1]
