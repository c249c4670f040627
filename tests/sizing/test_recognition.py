"""Recognition and voices, against published measurements."""

import json

import pytest

from tests.support.paths import ROOT
from voicepipe.config.engine_config import NemotronConfig
from voicepipe.sizing.constants import FIRST_TOKENS
from voicepipe.sizing.gpu_memory import llm_weights
from voicepipe.sizing.gpu_models import GPUS
from voicepipe.sizing.recognition import Nemotron, Whisper, recogniser
from voicepipe.sizing.shapes import ASRS
from voicepipe.sizing.stage import SharedGpu, StageJob
from voicepipe.sizing.traffic import Traffic
from voicepipe.sizing.voices import NEUTTS, NeuTtsCost, PhraseVoice, voice

H100, RTX_4090 = GPUS["h100"], GPUS["rtx-4090"]
ALONE = SharedGpu()


def ms(work: StageJob) -> float:
    """While nobody else is on the GPU."""
    return work.lasts(1.0)


def whisper_ms(name: str, window_s: float, speech_s: float) -> float:
    return ms(Whisper(ASRS[name]).reading(RTX_4090, window_s, speech_s))


def test_whisper() -> None:
    """faster-whisper on an RTX 4090, 30 s windows: 205, 219 and 208 ms for 2, 5 and 10 s of speech."""
    for seconds, published in ((2, 205), (5, 219), (10, 208)):
        assert whisper_ms("large-v3-turbo", 30, seconds) == pytest.approx(published, rel=0.15)
    assert whisper_ms("large-v3-turbo", 10, 2) < 0.5 * whisper_ms("large-v3-turbo", 30, 2)
    assert whisper_ms("large-v3", 10, 2) > whisper_ms("large-v3-turbo", 10, 2)


def test_words_that_are_forced_on_whisper_are_counted() -> None:
    """It decodes them one by one, too: a pass costs what all words of the utterance cost, known or not."""
    words = Whisper(ASRS["large-v3-turbo"])
    more = words.reading(H100, 10, 6).gpu - words.reading(H100, 10, 3).gpu
    assert more == pytest.approx(words.reading(H100, 10, 9).gpu - words.reading(H100, 10, 6).gpu) and more > 5


@pytest.mark.parametrize(("chunk_ms", "published"), [(320, 560), (80, 240)])
def test_streams_of_nemotron(chunk_ms: int, published: int) -> None:
    """NVIDIA's figures on one H100, both by one constant: a step of so many takes no longer than a chunk."""
    nemotron = Nemotron(chunk_ms)
    streams = (chunk_ms - nemotron.step_ms(H100, 0)) / nemotron.row_ms(H100)
    assert streams == pytest.approx(published, rel=0.25)


def test_a_step_of_nemotron() -> None:
    """A row costs no less than the project's own stand-ins of true shape under a CUDA graph took."""
    steps = json.loads((ROOT / "latency_probes" / "figures" / "h100-streaming.json").read_text())["steps"]
    measured = {
        step["rows"]: step["step_ms"]["p50"] for step in steps if (step["mode"], step["which"]) == ("graph", "tuned")
    }
    assert Nemotron().step_ms(H100, 1) == pytest.approx(measured[1], rel=0.25)
    for rows in (8, 16, 32, 64):
        assert Nemotron().step_ms(H100, rows) > 0.95 * measured[rows]


def test_a_stream_is_settled_sooner_than_a_window_is_read() -> None:
    for gpu in (H100, GPUS["l4"]):
        nemotron, whisper = (
            recogniser(name).stage(gpu, Traffic(), 4, ALONE).takes for name in ("nemotron", "large-v3-turbo")
        )
        assert nemotron.mean < 0.5 * whisper.mean


def test_whisper_leaves_out_what_it_has_no_time_for() -> None:
    """Partials: it is busy with finals alone then, and has work all the time nevertheless."""
    many = recogniser("large-v3-turbo").stage(H100, Traffic(), 24, ALONE)
    assert many.busy < 0.9 and many.takes.mean < 250 and many.on_gpu > 0.3


def test_steps_gather_calls_as_the_engine_does() -> None:
    assert Nemotron().gather_ms == NemotronConfig().gather_ms


def test_steps_that_wait_for_each_other_leave_the_gpu_to_others() -> None:
    """With a step for each chunk that is due the recogniser is seldom without work."""
    eager, patient = (Nemotron(gather_ms=wait).stage(H100, Traffic(), 32, ALONE) for wait in (0, 40))
    assert patient.on_gpu < 0.6 * eager.on_gpu and patient.takes.mean < eager.takes.mean + 5


def test_more_calls_make_larger_steps_not_more() -> None:
    eager = Nemotron(gather_ms=0)
    few, many = (eager.stage(H100, Traffic(), calls, SharedGpu(2.0)) for calls in (4, 64))
    assert few.on_gpu < 0.5 and many.on_gpu == 1.0 and many.busy < 0.9


def test_steps_that_last_longer_than_they_would_wait_gather_no_less() -> None:
    """One that begins when the last one ends hears all chunks that came meanwhile."""
    eager, patient = (Nemotron(gather_ms=wait).stage(H100, Traffic(), 64, SharedGpu(8.0)) for wait in (0, 40))
    assert patient == eager


def test_kokoro() -> None:
    kokoro = PhraseVoice("kokoro")
    assert 30 <= ms(kokoro.phrase(1.0)) and ms(kokoro.phrase(1.5)) <= 60
    assert ms(kokoro.phrase(10)) == pytest.approx(300, rel=0.1)
    assert kokoro.phrase(1.2).gpu > 7.4 and kokoro.phrase(2.6).gpu > 9.8, "no less than under a CUDA graph"


def test_one_phrase_at_a_time() -> None:
    """What a voice that makes whole phrases cannot do, others wait for without end."""
    few, many = (voice("kokoro").stage(H100, Traffic(), calls, ALONE, Traffic().phrase) for calls in (8, 48))
    assert few.busy < 0.3 and few.takes.mean < 110 and many.busy > 1 and many.takes.mean == float("inf")


def test_neutts() -> None:
    """Qwen2-0.5B with a vocabulary of sound: 748 million weights. 40 to 80 ms to the first sound on an H100."""
    assert NEUTTS.weights / 1e6 == pytest.approx(748, rel=0.01)
    assert llm_weights(NEUTTS, "bf16") < NeuTtsCost().memory < 8 * 2**30
    one = NeuTtsCost().stage(H100, Traffic(), 1, ALONE, Traffic().phrase)
    assert 30 < one.takes.mean < 80 and FIRST_TOKENS < 25


def test_a_voice_that_streams_serves_more() -> None:
    """Its calls are a batch. Where a token takes 20 ms it no longer keeps up with speech."""
    many = NeuTtsCost().stage(H100, Traffic(), 48, ALONE, Traffic().phrase)
    assert many.busy < 0.7 and many.takes.mean < 100
    slow = NeuTtsCost().stage(GPUS["l4"], Traffic(), 48, SharedGpu(3.0), Traffic().phrase)
    assert slow.busy > 1
