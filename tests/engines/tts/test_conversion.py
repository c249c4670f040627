"""A voice's sound at another rate."""

import numpy as np
import pytest

from tests.engines.contract import tone
from voicepipe.engines.base import Speech, Word
from voicepipe.engines.tts.conversion import Conversion


@pytest.mark.parametrize("target", [8000, 16_000, 48_000])
def test_words_end_where_they_did(target: int) -> None:
    sound = np.zeros(24_000, np.int16)
    speech = Conversion(24_000, target)(Speech(sound, (Word("Yes,", 6000), Word("open.", 24_000))))
    assert speech.words == (Word("Yes,", target // 4), Word("open.", target))
    assert speech.pcm.size == pytest.approx(target, abs=target // 100) and not speech.more


def test_pieces_are_one_sound_and_the_next_phrase_is_another() -> None:
    sound = tone(1.0)
    convert = Conversion(24_000, 16_000)
    whole = convert(Speech(sound)).pcm
    pieces = [convert(Speech(sound[:7000], more=True)), convert(Speech(sound[7000:]))]
    assert [piece.more for piece in pieces] == [True, False]
    assert np.array_equal(np.concatenate([piece.pcm for piece in pieces]), whole)
    assert np.array_equal(convert(Speech(sound)).pcm, whole)
