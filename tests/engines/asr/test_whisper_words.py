"""What becomes of the words of successive passes: hypotheses as Whisper revises them while a sentence grows."""

from collections.abc import Sequence

import pytest

from voicepipe.engines.asr.whisper_words import (
    Segment,
    Transcript,
    WhisperWord,
    ends_sentence,
    is_dictated,
    said,
    spelled,
    without_loops,
)
from voicepipe.languages.en.completeness import DIGITS

GROWING = [
    "What?",
    "What are your?",
    "What are your open",
    "What are your opening hours",
    "What are your opening hours on Sunday?",
    "What are your opening hours on Sundays, please?",
    "What are your opening hours on Sundays, please?",
]
REVISED = [
    " I'd like the book.",
    " I'd like to book a",
    " I'd like to book a table for two.",
    " I'd like to book a table for 2 at 7",
    " I'd like to book a table for 2 at 7:30 p.m.",
]
CAPITALS = ["okay", "Okay. so", "Okay, so I", "Okay, so I was wondering..."]


def words(text: str) -> list[WhisperWord]:
    """As the tokenizer would split it; the tokens are numbers that stand for the pieces."""
    pieces: list[tuple[str, list[int]]] = []
    for word in text.split():
        bare = word.rstrip(".,?!")
        pieces.append((f" {bare}", [hash(bare)]))
        if mark := word[len(bare) :]:
            pieces.append((mark, [hash(mark)]))
    return list(spelled(pieces))


def text_of(read: Sequence[WhisperWord]) -> str:
    return "".join(word.text for word in read).strip()


def run(hypotheses: list[str]) -> tuple[Transcript, list[str]]:
    """The transcript, and what stood after each pass."""
    transcript, stood = Transcript(), []
    for text in hypotheses:
        transcript.push(words(text))
        stood.append(" ".join(word.text.strip() for word in words(text)[: transcript.committed]))
    return transcript, stood


@pytest.mark.parametrize(
    ("hypotheses", "standing"),
    [
        (GROWING, ["", "What", "What are your", "What are your", "What are your opening hours",
                   "What are your opening hours on", "What are your opening hours on Sundays, please?"]),
        (REVISED, ["", "I'd like", "I'd like to book a", "I'd like to book a table for",
                   "I'd like to book a table for 2 at"]),
        (CAPITALS, ["", "Okay.", "Okay, so", "Okay, so I"]),
    ],
)  # fmt: skip
def test_words_stand_when_two_passes_agree_on_them(hypotheses: list[str], standing: list[str]) -> None:
    transcript, stood = run(hypotheses)
    assert stood == standing
    assert transcript.text == hypotheses[-1].strip()


def test_words_whose_sound_is_dropped_stand_before_the_others() -> None:
    transcript, _ = run(GROWING[:5])
    transcript.drop(4)
    assert transcript.text == GROWING[4]
    assert transcript.committed == 0
    transcript.push(words("hours on Sunday afternoon."))
    assert transcript.text == "What are your opening hours on Sunday afternoon."
    assert transcript.committed == 3, "the last pass of before counts"


def test_words_that_stood_may_turn_out_to_be_an_echo_of_the_decoder() -> None:
    transcript, _ = run(["no no no", "no no no"])
    assert transcript.committed == 3
    transcript.push(without_loops(words("no no no no no"), voiced_ms=5000))
    assert transcript.committed == 1


def test_marks_belong_to_the_word_before_or_else_after() -> None:
    spelling = spelled([("¿", [1]), ("Qué", [2, 3]), (" tal", [4]), ("?", [5]), ("!", [6]), (" -", [7]), ("", [])])
    assert [(word.text, word.tokens) for word in spelling] == [("¿Qué", (1, 2, 3)), (" tal?! -", (4, 5, 6, 7))]
    assert spelled([("...", [1])]) == ()


def test_vowel_signs_belong_to_the_letter_before() -> None:
    """The tokenizer gives scripts without spaces character by character."""
    spelling = spelled([("ด", [1]), ("ี", [2]), ("。", [3]), ("न", [4]), ("म", [5]), ("स", [6]), ("्", [7])])
    assert [(word.text, word.tokens) for word in spelling] == [
        ("ดี。", (1, 2, 3)),
        ("न", (4,)),
        ("म", (5,)),
        ("स्", (6, 7)),
    ]


@pytest.mark.parametrize(
    ("read", "left"),
    [
        ("Thank you. Thank you. Thank you. Thank you. Thank", "Thank you."),
        ("I was going to to to to to to", "I was going to"),
        ("So I said I don't know. I don't know. I don't know. I don't know.", "So I said I don't know."),
        ("no no no", "no no no"),
        ("my number is 5 5 5 5 5", "my number is 5 5 5 5 5"),
        ("what are your opening hours", "what are your opening hours"),
        ("号 码 五 五 五 五 五", "号 码 五 五 五 五 五"),
        ("", ""),
    ],
)
def test_what_a_decoder_says_over_and_over_is_said_once(read: str, left: str) -> None:
    assert text_of(without_loops(words(read), voiced_ms=5000)) == left


@pytest.mark.parametrize(
    ("read", "voiced_ms", "left"),
    [  # As tiny.en read them.
        ("4. 4. 4. 4", 340, "4."),
        ("12 12 12", 440, "12"),
        ("Hello? Okay? Hello? Okay? Hello?", 900, "Hello? Okay?"),
        ("What would dinner cost us? What would dinner", 1200, "What would dinner cost us?"),
        (
            "What is the price of lunch? What is the price of lunch? What is the price of lu",
            1500,
            "What is the price of lunch?",
        ),
        ("No, no, no.", 900, "No, no, no."),
        ("Hello? Hello?", 800, "Hello? Hello?"),
        ("I had had enough", 900, "I had had enough"),
    ],
)
def test_nobody_says_something_twice_in_so_little_time(read: str, voiced_ms: float, left: str) -> None:
    assert text_of(without_loops(words(read), voiced_ms)) == left


@pytest.mark.parametrize(
    ("segments", "sound_ms", "left"),
    [
        ([(0, "Do you have a menu for lunch?"), (1700, "Do")], 1900, "Do you have a menu for lunch?"),
        ([(0, "What would dinner cost us?"), (1060, "What would dinner")], 1500, "What would dinner cost us?"),
        ([(0, "A table for two."), (1600, "On Friday.")], 2500, "A table for two. On Friday."),
        ([(0, "Hello?"), (2000, "Hello?")], 3000, "Hello? Hello?"),
        ([(900, "Yes.")], 1000, "Yes."),
        ([(0, "5, 3"), (1400, "5.")], 1900, "5, 3 5."),
        ([(0, "Monday."), (1000, "No.")], 1300, "Monday. No."),
        ([(0, "Monday."), (1400, "No.")], 1300, "Monday."),
        ([], 1000, ""),
    ],
)
def test_what_is_said_behind_the_sound_was_not_said(
    segments: list[tuple[float, str]], sound_ms: float, left: str
) -> None:
    read = [Segment(begins_ms, tuple(words(text))) for begins_ms, text in segments]
    assert text_of(said(read, sound_ms, voiced_ms=sound_ms)) == left


@pytest.mark.parametrize(
    ("text", "dictated"),
    [
        ("My number is 555-0142.", True),
        ("five five five oh one", True),
        ("It's 555, 01 4 2", True),
        ("a table for 2 at 7:30 on Friday", False),
        ("room 2026, at 730", False),
        ("one or two", False),
        ("", False),
    ],
)
def test_many_digits_in_a_row_are_dictated(text: str, dictated: bool) -> None:
    assert is_dictated(text, DIGITS.__contains__) is dictated


@pytest.mark.parametrize(
    ("token", "ends"),
    [
        (".", True), ("?", True), ("!", True), ('."', True), ("?!", True), ("。", True), ("？", True), ("।", True),
        ("...", False), ("..", False), ("…", False), (",", False), ("-", False), ("", False), ("a.", False),
    ],
)  # fmt: skip
def test_marks_at_which_a_sentence_ends(token: str, ends: bool) -> None:
    assert ends_sentence(token) is ends
