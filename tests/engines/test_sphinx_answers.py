"""The recogniser knows what the caller was asked: among words that sound alike it hears the answer."""

from collections import Counter, deque
from collections.abc import Iterator

import pytest

from tests.engines.test_sphinx_numbers import clip
from voicepipe.engines.sphinx_answers import names, names_arpa, values, values_arpa
from voicepipe.engines.sphinx_decoder import Decoder, never_heard
from voicepipe.engines.sphinx_language import Language
from voicepipe.engines.sphinx_names import MEN, SURNAMES, WOMEN
from voicepipe.engines.sphinx_recognition import Recognition
from voicepipe.turn.answers import Wanted, answers


@pytest.fixture(scope="module")
def decoder() -> Iterator[Decoder]:
    decoder = Decoder(Language())
    yield decoder
    decoder.free()


def heard(decoder: Decoder, name: str, wants: Wanted = "") -> str:
    recognition = Recognition(decoder, deque([clip(f"short_answer/{name}.opus")]), wants)
    recognition.hear()
    text = recognition.settle().text
    recognition.close()
    return text


SAID: list[tuple[str, Wanted, str]] = [
    ("018-slt", "value", "four"),
    ("045-awb", "value", "two"),
    ("024-rms", "value", "just two"),
    ("043-rms", "value", "thursday"),
    ("041-awb", "name", "susan white"),
    ("025-rms", "name", "mary jones"),
]


def test_answers_are_heard_by_what_was_asked(decoder: Decoder) -> None:
    assert [heard(decoder, clip, wants) for clip, wants, _ in SAID] == [text for *_, text in SAID]
    without = sum(heard(decoder, clip) == text for clip, _, text in SAID)
    assert without < len(SAID)


def test_what_was_asked_counts_for_one_utterance(decoder: Decoder) -> None:
    before = heard(decoder, "045-awb")
    heard(decoder, "045-awb", "value")
    assert heard(decoder, "045-awb") == before


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
