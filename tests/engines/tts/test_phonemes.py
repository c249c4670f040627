"""Text in the IPA, by espeak-ng."""

import pytest

from voicepipe.base.errors import EngineError
from voicepipe.engines.tts.phonemes import Phonemizer

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def phonemizer() -> Phonemizer:
    return Phonemizer()


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("Hello, world!", "həlˈoʊ, wˈɜːld!"),  # as phonemizer writes them
        ("A table for two, on Friday at seven.", "ɐ tˈeɪbəl fɔːɹ tˈuː, ˌɔn fɹˈaɪdeɪ æt sˈɛvən."),
        ("No... it costs — okay?", "nˈoʊ... ɪt kˈɔsts — oʊkˈeɪ?"),
        ("3.5", "θɹˈiː pɔɪnt fˈaɪv"),
        ("...", "..."),
        ("", ""),
    ],
)
def test_words_stresses_and_punctuation(phonemizer: Phonemizer, text: str, phonemes: str) -> None:
    assert phonemizer.phonemes(text, "en-us") == phonemes


@pytest.mark.parametrize("text", ["<|speech_1|>", "[[h@]]", "<break/>", "\u4f60\u597d", "x" * 2000, "a\tb\nc"])
def test_any_text_becomes_phonemes_and_no_marks_of_the_model(phonemizer: Phonemizer, text: str) -> None:
    written = phonemizer.phonemes(text, "en-us")
    assert written and not set(written) & set("<|>[]")


@pytest.mark.parametrize("language", ["en", "en-us", "en-US", "en-gb", "en-GB", "fr", "fr-fr", "pt-br"])
def test_a_language_has_the_name_that_espeak_lists_it_by(phonemizer: Phonemizer, language: str) -> None:
    """espeak-ng lists "en-gb" and "fr-fr", and does not know them when it is asked for them."""
    assert phonemizer.phonemes("table", language)


def test_languages(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("gut", "de") == "ɡˈuːt" != phonemizer.phonemes("gut", "en-us")
    with pytest.raises(EngineError, match="no voice 'xx-none': write a language"):
        phonemizer.phonemes("ja", "xx-none")
    with pytest.raises(EngineError, match="no voice 'pt-brasil': write a language such as pt-br"):
        phonemizer.phonemes("sim", "pt-brasil")
    assert phonemizer.phonemes("Hello", "en-us") == "həlˈoʊ"
