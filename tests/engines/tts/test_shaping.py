"""What is done around every synthesiser's library, without one."""

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.engines.tts.shaping import MAX_LETTERS, letters, pieces, shape, word_starts

RATE = 22_050
UNREADABLE = regex.compile(r"(?V1)[\p{C}--[\u200C\u200D]]")


@given(st.text(max_size=2000))
def test_pieces_are_short_clean_and_complete(text: str) -> None:
    parts = pieces(text)
    assert all(0 < len(part) <= letters(part) <= MAX_LETTERS for part in parts)
    assert not any(UNREADABLE.search(part) for part in parts)


def test_signs_that_are_read_out_as_words_are_spoken_in_shorter_pieces() -> None:
    """300 times "percent" would take a voice three minutes, and all that while other callers had half of it."""
    assert len(pieces(150 * "1%")) == 9
    assert len(pieces(149 * "a " + "a.")) == 1
    assert len(pieces(300 * "好")) == 4


@given(st.lists(st.sampled_from(["word", "longer-word", "end."]), max_size=300))
def test_pieces_keep_every_word(words: list[str]) -> None:
    assert " ".join(pieces(" ".join(words))).split() == words


@given(
    st.lists(st.integers(-32768, 32767), max_size=3000), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3000)))
)
def test_shaping_is_total(samples: list[int], starts: list[tuple[int, int]]) -> None:
    speech = shape(np.array(samples, np.int16), starts, "two words.", RATE)
    ends = [word.end for word in speech.words]
    assert ends == sorted(ends)
    assert all(0 <= end <= speech.pcm.size for end in ends)


def test_without_times_there_are_no_words() -> None:
    loud = np.full(5000, 9000, np.int16)
    assert shape(loud, [], "two words.", RATE).words == ()
    assert [word.text for word in shape(loud, [(0, 0), (4, 2500)], "two words.", RATE).words] == ["two", "words."]


def test_silence_becomes_no_speech() -> None:
    assert shape(np.zeros(5000, np.int16), [], "text", RATE).pcm.size == 0


@pytest.mark.parametrize(
    ("text", "symbols", "begins_at"),
    [
        ("one two", "wˈʌn tˈuː", ["w", "t"]),
        (" one  two", "wˈʌn tˈuː", ["w", "t"]),
        ("out of the way", "ˈaʊt ʌvðə wˈeɪ", ["ˈ", "ʌ", "ʌ", "w"]),  # as espeak-ng joins them
    ],
)
def test_words_begin_with_their_first_sign(text: str, symbols: str, begins_at: list[str]) -> None:
    starts = word_starts(text, symbols, range(len(symbols)))
    assert [symbols[sample] for _, sample in starts] == begins_at
    assert [text[at:].split()[0] for at, _ in starts] == text.split()


def test_a_model_without_times_tells_none() -> None:
    assert word_starts("one two", "", []) == []


@given(st.text("ab ", max_size=50), st.text("xy ", max_size=50))
def test_words_begin_in_order(text: str, symbols: str) -> None:
    samples = [sample for _, sample in word_starts(text, symbols, range(len(symbols)))]
    assert samples == sorted(samples)
