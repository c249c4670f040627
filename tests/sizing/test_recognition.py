"""Recognition, against published measurements."""

import json

import pytest

from tests.support.paths import ROOT
from voicepipe.config.engine_config import NemotronConfig
from voicepipe.sizing.gpu_models import GPUS
from voicepipe.sizing.recognition import Nemotron, Whisper, recogniser
from voicepipe.sizing.shapes import ASRS
from voicepipe.sizing.stage import Contention, StageJob
from voicepipe.sizing.traffic import Traffic

H100, RTX_4090 = GPUS["h100"], GPUS["rtx-4090"]
ALONE = Contention()


def ms(work: StageJob) -> float:
    """While nobody else is on the GPU."""
    return work.duration(1.0)


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
            recogniser(name).stage(gpu, Traffic(), 4, ALONE).latency for name in ("nemotron", "large-v3-turbo")
        )
        assert nemotron.mean < 0.5 * whisper.mean


def test_whisper_leaves_out_what_it_has_no_time_for() -> None:
    """Partials: it is busy with finals alone then, and has work all the time nevertheless."""
    many = recogniser("large-v3-turbo").stage(H100, Traffic(), 24, ALONE)
    assert many.busy < 0.9 and many.latency.mean < 250 and many.on_gpu > 0.3


def test_steps_gather_calls_as_the_engine_does() -> None:
    assert Nemotron().gather_ms == NemotronConfig().gather_ms


def test_steps_that_wait_for_each_other_leave_the_gpu_to_others() -> None:
    """With a step for each chunk that is due the recogniser is seldom without work."""
    eager, patient = (Nemotron(gather_ms=wait).stage(H100, Traffic(), 32, ALONE) for wait in (0, 40))
    assert patient.on_gpu < 0.6 * eager.on_gpu and patient.latency.mean < eager.latency.mean + 5


def test_more_calls_make_larger_steps_not_more() -> None:
    eager = Nemotron(gather_ms=0)
    few, many = (eager.stage(H100, Traffic(), calls, Contention(2.0)) for calls in (4, 64))
    assert few.on_gpu < 0.5 and many.on_gpu == 1.0 and many.busy < 0.9


def test_steps_that_last_longer_than_they_would_wait_gather_no_less() -> None:
    """One that begins when the last one ends hears all chunks that came meanwhile."""
    eager, patient = (Nemotron(gather_ms=wait).stage(H100, Traffic(), 64, Contention(8.0)) for wait in (0, 40))
    assert patient == eager
