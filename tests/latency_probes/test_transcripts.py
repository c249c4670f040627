"""Words, errors, and replies that are no answer."""

import pytest

from latency_probes.transcripts import contains, is_acknowledgement, is_fallback, matches, word_error_rate, words


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Table for 2, at 7:30!", "table for two at seven thirty"),
        ("It's 42 euros", "it is forty two euros"),
        ("I'm sorry, they don't", "i am sorry they do not"),
        ("call 555 1212", "call five five five one two one two"),
        ("Harbour House", "harbor house"),
        ("room 07", "room zero seven"),
        ("at 730, or 12:15", "at seven thirty or twelve fifteen"),
        ("5-55-01", "five five five zero one"),
        ("oh one", "zero one"),
        ("L’État, où?", "l'etat ou"),
        ("Введите ещё 'номер'", "введите еще номер"),
    ],
)
def test_words_are_as_spoken(text: str, spoken: str) -> None:
    assert words(text) == spoken.split()


@pytest.mark.parametrize(
    ("reference", "heard", "rate"),
    [("a b c d", "a b c d", 0), ("a b c d", "a x c d", 0.25), ("a b c d", "a b", 0.5), ("a", "a b c", 2)],
)
def test_word_error_rate(reference: str, heard: str, rate: float) -> None:
    assert word_error_rate(reference, heard) == rate


def test_a_half_is_found_with_some_words_wrong() -> None:
    assert contains("i need a table four to on thursday", "on thursday at seven")
    assert not contains("i need a table", "on thursday at seven")


@pytest.mark.parametrize(
    "text", ["One moment, please.", "Let me check.", "Hmm.", "Okay.", "Just a moment. We close at ten."]
)
def test_acknowledgements(text: str) -> None:
    assert is_acknowledgement(text)


@pytest.mark.parametrize("text", ["Okay, a table for two.", "Yes, behind the house.", "We are open.", ""])
def test_answers(text: str) -> None:
    assert not is_acknowledgement(text)


def test_fallbacks() -> None:
    assert is_fallback("Sorry, something went wrong here. Could you say that again?")
    assert is_fallback("Sorry, I didn't catch that.")
    assert not is_fallback("We are open from noon.")


def test_any_reply_will_do_without_expectations() -> None:
    assert matches("whatever", [])
    assert matches("We CLOSE at ten", ["close at (ten|10)"])
    assert not matches("no", ["yes"])
