"""Whisper with real weights: how much it writes until it is stopped."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from latency_probes import clips
from latency_probes.timeline import WIRE_RATE
from voicepipe.audio import RATE, Pcm, ms_to_samples
from voicepipe.audio.resample import Resampler
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.asr import whisper_model
from voicepipe.engines.asr.whisper_model import LoadedWhisper, Passage
from voicepipe.engines.asr.whisper_words import WhisperWord

SHORT_ANSWERS = slice(0, 40, 2)
BEHIND = np.zeros(ms_to_samples(40), np.int16)
"""Silence that has come when a pass begins."""


@pytest.fixture(scope="module", name="whisper")
def _whisper() -> Iterator[LoadedWhisper]:
    model = LoadedWhisper(WhisperConfig())
    yield model
    model.unload()


@pytest.fixture(scope="module", name="answers")
def _answers() -> list[Pcm]:
    """Short answers by natural voices, read where a pass begins: int16[n] at 16 kHz."""
    spoken = []
    for clip in clips.load(("short_answer",))[SHORT_ANSWERS]:
        speech, down = clips.speech(clip, 1), Resampler(WIRE_RATE, RATE)
        spoken.append(np.concatenate([down(speech.pcm[: speech.voiced[1]]), down.flush(), BEHIND]))
    return spoken


def words(whisper: LoadedWhisper, spoken: list[Pcm]) -> list[tuple[WhisperWord, ...]]:
    return [whisper.read([Passage(pcm)])[0].words for pcm in spoken]


def test_it_is_stopped_where_it_says_the_words_again(
    whisper: LoadedWhisper, answers: list[Pcm], monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: list[int] = []

    def counted(passage: Passage, result: Any, most: int, tokenizer: Any) -> object:
        tokens.append(len(result.sequences_ids[0]))
        return decoding(passage, result, most, tokenizer)

    decoding = whisper_model._decoding
    monkeypatch.setattr(whisper_model, "_decoding", counted)
    said, stopped = words(whisper, answers), tokens.copy()
    assert len(stopped) == len(answers), "none was read twice"
    tokens.clear()
    monkeypatch.setattr(whisper_model, "FIRST_LIMIT_SHARE", 2)  # As if people mostly needed more than they ever do.
    assert words(whisper, answers) == said
    assert max(tokens) > 1.3 * max(stopped), "some answers would have been said again and again"


def test_who_says_more_than_is_usual_is_read_to_the_end(
    whisper: LoadedWhisper, answers: list[Pcm], monkeypatch: pytest.MonkeyPatch
) -> None:
    as_usual = words(whisper, answers)
    monkeypatch.setattr(whisper_model, "FIRST_LIMIT_SHARE", 0)
    monkeypatch.setattr(whisper_model, "FIRST_LIMIT_MORE", 2)
    assert words(whisper, answers) == as_usual


def test_words_that_nobody_wants_any_more_are_not_written(whisper: LoadedWhisper, answers: list[Pcm]) -> None:
    assert whisper.read([Passage(answers[0], wanted=lambda: False)]) == []
    (reading,) = whisper.read([Passage(answers[0], wanted=lambda: True)])
    assert reading == whisper.read([Passage(answers[0])])[0]
