"""`whisper` with real weights says how likely a sentence ends after the words that it reads."""

from collections.abc import Iterator

import numpy as np
import pytest

from latency_probes import clips
from latency_probes.timeline import WIRE_RATE
from voicepipe.audio import RATE, Pcm, ms_to_samples
from voicepipe.audio.resample import Resampler
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.whisper_model import LoadedWhisper, Passage

pytestmark = pytest.mark.engine
EACH = 12


@pytest.fixture(scope="module", name="whisper")
def _whisper() -> Iterator[LoadedWhisper]:
    model = LoadedWhisper(WhisperConfig())
    yield model
    model.unload()


def spoken(kind: str) -> Iterator[Pcm]:
    """Clips of a natural voice in a quiet room, up to their pause: int16[n] at 16 kHz."""
    for clip in [clip for clip in clips.load((kind,)) if clip.voice == "heart"][:EACH]:
        pcm, down = clips.decode(clips.FOLDER / clip.file), Resampler(WIRE_RATE, RATE)
        pcm = pcm[: ms_to_samples(clip.cut_ms, WIRE_RATE)] if clip.cut_ms else pcm
        yield np.concatenate([down(pcm), down.flush()])


def full_stops(whisper: LoadedWhisper, kind: str) -> list[float]:
    """How likely a sentence ends there, for each clip."""
    readings = [whisper.read([Passage(pcm)])[0] for pcm in spoken(kind)]
    return [reading.full_stop or 0.0 for reading in readings]


def test_a_sentence_ends_where_it_is_whole(whisper: LoadedWhisper) -> None:
    whole, cut = full_stops(whisper, "finished"), full_stops(whisper, "pause_inside")
    assert np.median(whole) > 0.8
    assert np.mean(np.array(whole)[:, None] > np.array(cut)[None]) > 0.8, "share of the pairs that are in order"


def test_nothing_ends_where_nothing_is_said(whisper: LoadedWhisper) -> None:
    (reading,) = whisper.read([Passage(np.zeros(RATE, np.int16), voiced=0)])
    assert reading.words or reading.full_stop is None
