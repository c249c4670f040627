"""Words in which people say digits: those of each language, and those that are something else."""

import pytest

from voicepipe.redaction.number_words import ABROAD, ASKED, CARD, EVIDENCE, PERHAPS, UNITS, WORDS, Kind


@pytest.mark.parametrize("language", UNITS)
def test_each_language_has_its_ten_digits(language: str) -> None:
    for digit, word in enumerate(UNITS[language].split()):
        known = ABROAD[word][language] if language in ABROAD.get(word, {}) else WORDS[word]
        assert known == (Kind.UNIT, str(digit)), word


@pytest.mark.parametrize(
    ("word", "kind", "digits"),
    [
        ("eleven", Kind.TEEN, "11"),
        ("ninety", Kind.TEN, "90"),
        ("einundvierzig", Kind.TEEN, "41"),
        ("drieëndertig", Kind.TEEN, "33"),
        ("vierenveertig", Kind.TEEN, "44"),
        ("ventuno", Kind.TEEN, "21"),
        ("quarantotto", Kind.TEEN, "48"),
        ("trentadue", Kind.TEEN, "32"),
        ("veinticinco", Kind.TEEN, "25"),
        ("veintidós", Kind.TEEN, "22"),
        ("veintitrés", Kind.TEEN, "23"),
        ("veintiséis", Kind.TEEN, "26"),
        ("ventitré", Kind.TEEN, "23"),
        ("novantatré", Kind.TEEN, "93"),
        ("veintidos", Kind.TEEN, "22"),
        ("zwo", Kind.UNIT, "2"),
        ("niner", Kind.UNIT, "9"),
        ("double", Kind.TIMES, "2"),
        ("sixes", Kind.PLURAL, "6"),
        ("ones", Kind.PLURAL, "1"),
        ("or", Kind.APART, ""),
    ],
)
def test_numbers_in_one_word(word: str, kind: Kind, digits: str) -> None:
    assert WORDS[word] == (kind, digits)


@pytest.mark.parametrize("word", ["due", "once", "sept", "une", "eine", "elf"])
def test_a_word_that_is_another_one_elsewhere_is_a_digit_in_its_language_alone(word: str) -> None:
    assert word in ABROAD and WORDS.get(word, (None, ""))[0] is not Kind.UNIT and word not in EVIDENCE


@pytest.mark.parametrize(("word", "languages"), [("vier", {"de", "nl"}), ("cuatro", {"es"}), ("neuf", {"fr"})])
def test_some_words_tell_which_language_is_spoken(word: str, languages: set[str]) -> None:
    assert EVIDENCE[word] == languages


def test_what_sounds_like_a_digit_is_one_only_perhaps() -> None:
    assert {word: WORDS[word] for word in PERHAPS} == {word: (Kind.PERHAPS, PERHAPS[word]) for word in PERHAPS}


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ("For how many people?", True),
        ("How many digits are there?", False),
        ("What is your phone number?", True),
        ("When shall I book it?", True),
        ("When you are ready, your card number.", False),
        ("Wie viele Personen?", True),
        ("À quelle heure ?", True),
        ("Your card number, please?", False),
    ],
)
def test_what_the_agent_asks_for_may_be_no_card(said: str, asks: bool) -> None:
    assert bool(ASKED.search(said)) is asks


def test_cards_have_their_genitive() -> None:
    assert {"card", "cardʼs", "kreditkarte"} <= CARD
