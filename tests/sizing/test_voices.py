"""Voices, against published measurements."""

import pytest

from voicepipe.sizing import constants
from voicepipe.sizing.constants import FIRST_TOKENS
from voicepipe.sizing.gpu_memory import llm_weights
from voicepipe.sizing.gpu_models import GPUS
from voicepipe.sizing.stage import Contention, StageJob
from voicepipe.sizing.traffic import Traffic
from voicepipe.sizing.voices import NEUTTS, NeuTtsCost, PhraseVoice, voice


def test_voices() -> None:
    kokoro, coqui = (voice(name).memory for name in ("kokoro", "coqui"))
    assert kokoro == constants.TTS_WEIGHTS["kokoro"] + constants.TTS_WORKSPACE, "in the PoP's process"
    assert coqui == constants.TTS_WEIGHTS["coqui"] + constants.TTS_WORKSPACE + constants.CONTEXT


H100, RTX_4090 = GPUS["h100"], GPUS["rtx-4090"]

ALONE = Contention()


def ms(work: StageJob) -> float:
    """While nobody else is on the GPU."""
    return work.duration(1.0)


def test_kokoro() -> None:
    kokoro = PhraseVoice("kokoro")
    assert 30 <= ms(kokoro.phrase(1.0)) and ms(kokoro.phrase(1.5)) <= 60
    assert ms(kokoro.phrase(10)) == pytest.approx(300, rel=0.1)
    assert kokoro.phrase(1.2).gpu > 7.4 and kokoro.phrase(2.6).gpu > 9.8, "no less than under a CUDA graph"


def test_one_phrase_at_a_time() -> None:
    """What a voice that makes whole phrases cannot do, others wait for without end."""
    few, many = (voice("kokoro").stage(H100, Traffic(), calls, ALONE, Traffic().phrase) for calls in (8, 48))
    assert few.busy < 0.3 and few.latency.mean < 110 and many.busy > 1 and many.latency.mean == float("inf")


def test_neutts() -> None:
    """Qwen2-0.5B with a vocabulary of sound: 748 million weights. 40 to 80 ms to the first sound on an H100."""
    assert NEUTTS.weights / 1e6 == pytest.approx(748, rel=0.01)
    assert llm_weights(NEUTTS, "bf16") < NeuTtsCost().memory < 8 * 2**30
    one = NeuTtsCost().stage(H100, Traffic(), 1, ALONE, Traffic().phrase)
    assert 30 < one.latency.mean < 80 and FIRST_TOKENS < 25


def test_a_voice_that_streams_serves_more() -> None:
    """Its calls are a batch. Where a token takes 20 ms it no longer keeps up with speech."""
    many = NeuTtsCost().stage(H100, Traffic(), 48, ALONE, Traffic().phrase)
    assert many.busy < 0.7 and many.latency.mean < 100
    slow = NeuTtsCost().stage(GPUS["l4"], Traffic(), 48, Contention(3.0), Traffic().phrase)
    assert slow.busy > 1
