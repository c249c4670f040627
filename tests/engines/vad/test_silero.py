"""Silero: window by window the same as the library's whole-file run, and fast enough for the event loop."""

import importlib.util
import time

import numpy as np
import pytest

from tests.engines.contract import tone, whole
from voicepipe.audio import RATE, Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.vad.silero import WINDOW, SileroVad, model_path

pytestmark = pytest.mark.engine


async def speech() -> Pcm:
    """Half a second of silence, a sentence, half a second of silence."""
    tts = EspeakTts()
    await tts.start()
    said = await whole(tts, "Good evening, I would like to book a table for two.")
    resampler = Resampler(tts.rate, RATE)
    quiet = np.zeros(RATE // 2, np.int16)
    pcm: Pcm = np.concatenate([quiet, resampler(said.pcm), resampler.flush(), quiet])
    return pcm[: pcm.size // WINDOW * WINDOW]


async def test_streaming_equals_the_whole_file() -> None:
    from faster_whisper.vad import SileroVADModel

    pcm = await speech()
    expected = SileroVADModel(str(model_path()))(pcm.astype(np.float32) / 32768).reshape(-1)
    vad = SileroVad()
    await vad.start()
    stream = vad.stream()
    streamed = [vad.probabilities([(stream, window)])[0] for window in pcm.reshape(-1, WINDOW)]
    assert streamed == pytest.approx(expected.tolist(), abs=1e-5)


async def test_voice_is_told_from_silence_and_from_hum() -> None:
    pcm = await speech()
    vad = SileroVad()
    await vad.start()
    stream = vad.stream()
    probabilities = np.array([vad.probabilities([(stream, window)])[0] for window in pcm.reshape(-1, WINDOW)])
    silent = RATE // 2 // WINDOW
    assert probabilities[:silent].max() < 0.35
    assert np.median(probabilities[silent + 2 : -silent - 4]) > 0.8


async def test_calls_that_are_asked_about_together_are_told_what_each_would_be_alone() -> None:
    pcm = await speech()
    vad = SileroVad()
    await vad.start()
    windows = pcm.reshape(-1, WINDOW)[:60]
    alone = vad.stream()
    expected = [vad.probabilities([(alone, window)])[0] for window in windows]
    streams = [vad.stream() for _ in range(40)]
    late = [np.concatenate([np.zeros_like(windows[:n]), windows])[: len(windows)] for n in range(len(streams))]
    found = [vad.probabilities([(s, own[at]) for s, own in zip(streams, late, strict=True)]) for at in range(60)]
    assert [row[0] for row in found] == pytest.approx(expected, abs=1e-5)
    own, by_itself = late[7], vad.stream()
    expected = [vad.probabilities([(by_itself, window)])[0] for window in own]
    assert [row[7] for row in found] == pytest.approx(expected, abs=1e-5)


async def test_a_window_takes_well_under_a_millisecond() -> None:
    vad = SileroVad()
    await vad.start()
    stream = vad.stream()
    window = tone(1)[:WINDOW]
    times = []
    for _ in range(200):
        begun = time.perf_counter()
        vad.probabilities([(stream, window)])
        times.append(time.perf_counter() - begun)
    assert np.median(times) < 0.001


@pytest.mark.parametrize("size", [0, 160, 511, 513])
async def test_windows_of_another_length_are_refused(size: int) -> None:
    vad = SileroVad()
    await vad.start()
    with pytest.raises(EngineError):
        vad.probabilities([(vad.stream(), np.zeros(size, np.int16))])


def test_no_stream_before_the_start() -> None:
    with pytest.raises(EngineError):
        SileroVad().stream()


def test_a_missing_model_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EngineMissing, match="faster-whisper"):
        model_path()
