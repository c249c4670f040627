"""Stages that share a GPU, against what the project's stand-ins took on an H100 (`latency_probes/figures`)."""

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.support.paths import ROOT
from voicepipe.sizing.constants import REQUEST_MS
from voicepipe.sizing.gpu_models import GPUS, LINKS, GpuModel
from voicepipe.sizing.host import SizedHost
from voicepipe.sizing.language import ParallelGroup
from voicepipe.sizing.recognition import Nemotron
from voicepipe.sizing.shapes import LLMS
from voicepipe.sizing.stage import StageJob, contentions
from voicepipe.sizing.traffic import FirstPhrase, Traffic
from voicepipe.sizing.turn import TurnEstimate, turn
from voicepipe.sizing.voices import PhraseVoice

FIGURES = ROOT / "latency_probes" / "figures"
SLOWER = replace(GPUS["h100"], bandwidth_gbs=2250)
"""With which a token takes the 10.5 ms that the stand-in of the language model took alone."""
ASKED = Traffic(turn_s=6, speaking=1, silences=1.0001, phrase=FirstPhrase(8, 1.2), short_phrase_ms=0)
"""As the stand-ins were: a turn each 6 s, sound all the time, no reply for nothing, no ladder."""
BEFORE_MS = 80.0


class StandInAsr(Nemotron):
    """Its steps did not gather calls."""

    def row_ms(self, gpu: GpuModel) -> float:
        return 0.075


@dataclass(frozen=True, slots=True)
class StandInVoice(PhraseVoice):
    """7.4 and 9.8 ms for phrases of 1.2 and 2.6 s; none: as if nobody spoke."""

    silent: bool = False

    def phrase(self, speech_s: float) -> StageJob:
        return StageJob(0, 1e-6 if self.silent else 5.3 + 1.75 * speech_s)


def predicted(calls: int, *, mps: bool, silent: bool = False) -> TurnEstimate:
    group = ParallelGroup(LLMS["llama-3.1-8b"], "bf16", SLOWER, LINKS["nvlink"])
    return turn(SizedHost(group, 1, StandInAsr(gather_ms=0), StandInVoice("kokoro", silent), mps, traffic=ASKED), calls)


def cases(file: str) -> dict[int, dict[str, Any]]:
    found = json.loads((FIGURES / file).read_text())["cases"]
    return {case["calls"]: case for case in found if case["where"] == "two processes"}


@pytest.mark.parametrize(("file", "mps"), [("h100-streaming-no-mps.json", False), ("h100-streaming-mps.json", True)])
def test_a_recogniser_and_a_language_model(file: str, mps: bool) -> None:
    """Taking turns makes a first phrase 1.5 to 2.3 times as long, MPS 1.1 to 1.4 times."""
    for calls, case in cases(file).items():
        at = predicted(calls, mps=mps, silent=True)
        phrase = at.first_token + at.first_phrase - REQUEST_MS
        assert phrase == pytest.approx(case["llm_first_phrase_ms"]["mean"], rel=0.15)
        assert at.asr == pytest.approx(case["settle_ms"]["mean"], rel=0.4), "the smaller part; it is told too short"
        assert phrase + at.asr == pytest.approx(
            case["llm_first_phrase_ms"]["mean"] + case["settle_ms"]["mean"], rel=0.15
        )


@pytest.mark.parametrize(("file", "mps"), [("h100-voice-no-mps.json", False), ("h100-voice-mps.json", True)])
def test_a_turn_with_a_voice(file: str, mps: bool) -> None:
    """End of speech to first sound, of which no way to vLLM is a part there; each p95 stands on 24 turns and more."""
    for calls, case in cases(file).items():
        at, took = predicted(calls, mps=mps), case["turn_ms"]
        assert BEFORE_MS + at.compute - REQUEST_MS == pytest.approx(took["mean"], rel=0.1)
        if took["count"] >= 24 and calls < 64:
            assert BEFORE_MS + at.compute_p95 - REQUEST_MS == pytest.approx(took["p95"], rel=0.1)


def test_who_is_alone_is_not_slowed_down() -> None:
    found = contentions({"a": lambda others: 0.2 * others.slowdown, "b": lambda others: 0.0}, {})
    assert found["a"].slowdown == 1 and found["b"].slowdown == pytest.approx(1.2)
    assert found["a"].spread == 0


def test_each_waits_for_who_waits_for_it() -> None:
    """Two that have work for a third of the time each take 1.5 times as long, and then have it for half of the time."""
    found = contentions(dict.fromkeys("ab", lambda others: others.slowdown / 3), {})
    assert found["a"].slowdown == found["b"].slowdown == pytest.approx(1.5, abs=0.01)
    assert found["a"].spread == pytest.approx(0.5, abs=0.01)


def test_two_that_always_have_work_get_half_each() -> None:
    always = dict.fromkeys("ab", lambda others: 1.0)
    assert contentions(always, {})["a"].slowdown == 2
    assert contentions(always, {"a": 0.35})["a"].slowdown == 1.35
