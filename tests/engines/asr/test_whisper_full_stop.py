"""`whisper` with real weights says how likely a sentence ends after the words that it reads."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from ctranslate2 import StorageView

from latency_probes import clips
from latency_probes.timeline import WIRE_RATE
from voicepipe.audio import RATE, Pcm, ms_to_samples
from voicepipe.audio.resample import Resampler
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.asr.whisper_model import REPETITION_PENALTY, LoadedWhisper, Passage, _segments

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
    assert all(reading.full_stop is not None for reading in readings)
    return [reading.full_stop for reading in readings if reading.full_stop is not None]


def test_a_sentence_ends_where_it_is_whole(whisper: LoadedWhisper) -> None:
    whole, cut = full_stops(whisper, "finished"), full_stops(whisper, "pause_inside")
    assert np.median(whole) > 0.8
    assert np.mean(np.array(whole)[:, None] > np.array(cut)[None]) > 0.8, "share of the pairs that are in order"


class Decoder:
    """Tokens are words, marks, or times: what it wrote, and what it thought of the token at each place."""

    eot, timestamp_begin = 100, 101
    texts = (" 50", "%", ".", " The", " roof", "...", "♪")

    def __init__(self, *wrote: int, stops: dict[int, float]) -> None:
        self.sequences_ids = [list(wrote)]
        self.logits = [[self._thought(wrote[:at], stops.get(at, 0.0)) for at in range(len(wrote) + 1)]]

    @staticmethod
    def _thought(wrote: Sequence[int], stop: float) -> StorageView:
        """Logits below 0, as CTranslate2 gives them: of the tokens that were written they are lower."""
        likely = np.full(200, 1e-9, np.float32)
        likely[: len(Decoder.texts)] = (1 - stop) / (len(Decoder.texts) - 1) + 1e-9
        likely[2] = stop + 1e-9
        logits = np.log(likely)
        logits[list(wrote)] *= REPETITION_PENALTY
        return StorageView.from_array(logits[None].astype(np.float32))

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(self.texts[token] for token in tokens)

    def split_to_word_tokens(self, tokens: Sequence[int]) -> tuple[list[str], list[list[int]]]:
        return [self.decode([token]) for token in tokens], [[token] for token in tokens]


@pytest.mark.parametrize(
    ("wrote", "at"),
    [
        ((101, 3, 4, 2, 150), 3),
        ((101, 3, 4, 150), 3),
        ((101, 6, 120, 120, 3, 4, 2, 150), 6),
        ((101, 0, 1, 2, 150), 3),
        ((101, 3, 4, 5, 150), 3),
    ],
    ids=["a full stop", "no mark", "a segment without words before", "per cent is said", "three dots"],
)
def test_it_is_what_the_decoder_thought_behind_the_last_word(
    whisper: LoadedWhisper, wrote: tuple[int, ...], at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = Decoder(*wrote, stops={at: 0.75})
    monkeypatch.setattr(whisper, "_marks", np.array([2], np.intp))
    words = tuple(word for segment in _segments(wrote, decoder) for word in segment.words)
    assert whisper._full_stop(words, decoder, len(wrote), decoder) == pytest.approx(0.75, abs=1e-3)
    assert whisper._full_stop(words, decoder, at, decoder) is None, "where the decoder was stopped at its limit"
    assert whisper._full_stop((), decoder, len(wrote), decoder) is None
