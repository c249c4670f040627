"""The recogniser knows what the caller was asked: among words that sound alike it hears the answer."""

from collections import Counter, deque
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest

from tests.engines.test_sphinx_numbers import clip
from voicepipe.audio import ms_to_samples
from voicepipe.engines.sphinx_answers import names, names_arpa, values, values_arpa
from voicepipe.engines.sphinx_decoder import SphinxDecoder, never_heard
from voicepipe.engines.sphinx_language import SphinxLanguage
from voicepipe.engines.sphinx_names import MEN, SURNAMES, WOMEN
from voicepipe.engines.sphinx_recognition import REPLAY, Recognition
from voicepipe.turn.answers import Wanted, answers

PIECE = ms_to_samples(20)


@pytest.fixture(scope="module")
def decoder() -> Iterator[SphinxDecoder]:
    decoder = SphinxDecoder(SphinxLanguage())
    yield decoder
    decoder.free()


def heard(decoder: SphinxDecoder, name: str, wants: Wanted = "") -> str:
    recognition = Recognition(decoder, deque([clip(f"short_answer/{name}.opus")]), wants)
    recognition.hear()
    text = recognition.settle().text
    recognition.close()
    return text


SAID: list[tuple[str, Wanted, str]] = [
    ("018-slt", "value", "four"),
    ("045-awb", "value", "two"),
    ("024-rms", "value", "just two"),
    ("024-slt", "value", "just two"),
    ("011-slt", "value", "five"),
    ("043-rms", "value", "thursday"),
    ("041-awb", "name", "susan white"),
    ("025-rms", "name", "mary jones"),
]


def test_answers_are_heard_by_what_was_asked(decoder: SphinxDecoder) -> None:
    assert [heard(decoder, clip, wants) for clip, wants, _ in SAID] == [text for *_, text in SAID]
    without = sum(heard(decoder, clip) == text for clip, _, text in SAID)
    assert without < len(SAID)


def test_what_was_asked_counts_for_one_utterance(decoder: SphinxDecoder) -> None:
    before = heard(decoder, "045-awb")
    heard(decoder, "045-awb", "value")
    assert heard(decoder, "045-awb") == before


def in_pieces(decoder: SphinxDecoder, name: str, wants: Wanted) -> tuple[int, str]:
    """The clip in pieces of 20 ms: how often decoding began before the words were asked for, and the words."""
    recognition = Recognition(decoder, deque(), wants)
    sound = clip(f"short_answer/{name}.opus")
    with patch.object(decoder, "start", wraps=decoder.start) as start:
        for at in range(0, sound.size, PIECE):
            recognition._inbox.append(sound[at : at + PIECE])
            recognition.hear()
        begun = start.call_count
        text = recognition.settle().text
    recognition.close()
    return begun, text


def test_an_answer_that_may_be_over_is_decoded_before_its_words_are_asked_for(decoder: SphinxDecoder) -> None:
    """One that is shorter than BEGINNING is else decoded while the caller waits for the reply."""
    assert in_pieces(decoder, "018-slt", "value") == (1, "four")
    assert in_pieces(decoder, "018-slt", "")[0] == 0


@pytest.mark.parametrize(("name", "text"), [("019-slt", "four people"), ("046-rms", "two people")])
def test_one_that_goes_on_is_decoded_anew(decoder: SphinxDecoder, name: str, text: str) -> None:
    """At the silence before a p it seemed to be over."""
    assert in_pieces(decoder, name, "value") == (2, text)


def test_what_goes_on_late_is_not_decoded_anew(decoder: SphinxDecoder) -> None:
    """That would hold up the words to come."""
    four = clip("short_answer/018-slt.opus")
    recognition = Recognition(decoder, deque(), "value")
    with patch.object(decoder, "start", wraps=decoder.start) as start:
        for sound in (four, np.zeros(REPLAY, np.int16), four):
            recognition._inbox.append(sound)
            recognition.hear()
            recognition.hear_out()
    recognition.close()
    assert start.call_count == 1


def test_every_word_can_be_heard() -> None:
    assert not never_heard([*values(), *names()])


def test_no_name_is_there_twice() -> None:
    assert not [name for listed in (MEN, WOMEN, SURNAMES) for name, n in Counter(listed).items() if n > 1]


def test_what_is_expected_ends_a_turn() -> None:
    """Or else it would be heard, and waited for."""
    odd = {text for text in values() if not answers(text, "Is that right?") and not answers(text, "For how many?")}
    assert odd == set()
    assert not {text for text in names() if not answers(text, "What is your name?")}


def test_the_models_are_models() -> None:
    for model in (values_arpa(), names_arpa()):
        assert model.startswith("\\data\\") and model.rstrip().endswith("\\end\\")
