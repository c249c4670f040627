"""A language's number words, `digits.toml` in its folder: the words for digits, and the words that callers say around
them, by which card numbers are found in what is said (`redaction/`). Pure.

All is in small letters. Lists of words are texts with blanks between them. Where words stand by their value, all words
for one value have "/" between them: "zwei/zwo".
"""

from functools import cache
from importlib import resources

import msgspec


class OneWordNumbers(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a language writes numbers of several digits as one word: "fünfundvierzig", "quattromilacinquecento"."""

    tens: str = ""
    """20 to 90, as they are written beside a unit: "venti/vent". Fewer: only these have such words. Empty: as `tens` of
    the file."""
    units: str
    """1 to 9, as they are written beside a ten: "einund", "tre/tré"."""
    unit_first: bool = False
    """ "fünfundvierzig"; otherwise "quarantacinque"."""
    hundred: str = ""
    """In the middle of a word: "hundert". Empty: such numbers are several words."""
    thousand: str = ""
    """All ways, with blanks: "mila mille"."""
    inside: str = ""
    """What may follow these in the word: "und" in "hundertundeins"."""


class DigitsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All of the file."""

    units: str
    """0 to 9."""
    teens: str
    """10 to 19; fewer where the others are two words ("dix-sept")."""
    tens: str
    """20 to 90."""
    hundreds: str = ""
    """100 to 900, where these are words of their own: "quinientos"."""
    hundred: str = ""
    """Multiplies the number before it, or is 100: "hundred"."""
    thousand: str = ""
    one_word: OneWordNumbers | None = None
    eighty: str = ""
    """Two words for 80: "quatre vingt/vingts"."""
    tens_with_teens: str = ""
    """Tens behind which 11 to 19 may stand: "soixante" in "soixante-douze"."""
    ten_with_units: str = ""
    """A ten behind which 7, 8 or 9 may stand: "dix" in "dix-sept"."""
    joins_tens: str = ""
    """Between a ten and a unit: "y" in "treinta y uno"."""
    joins_units: str = ""
    """Between a unit and a ten: "und", where it is written apart."""
    joins_hundreds: str = ""
    """Behind hundreds and thousands: "and" in "two hundred and three"."""
    times: dict[str, int] = {}
    """The next digit counts so often: "double"."""
    fold: str = ""
    """The same, with a number before it: "fois" in "trois fois cinq"."""
    before_counted: str = ""
    """May stand between these and the digit: "le"."""
    plurals: str = ""
    """0 to 9 in "four ones": the digit counts so often."""
    perhaps: dict[str, str] = {}
    """Words that sound like a digit, which they are only beside digits: "for"."""
    ambiguous: str = ""
    """Words of this file that are other words in another language ("once"): they count only where this one is spoken.
    What English has with another meaning counts so without being here."""
    no_evidence: str = ""
    """Digits that show no language, since they are common words in another."""
    fillers: str
    """May be between the digits of one number: hesitations, "and then", "yes", "one moment"."""
    counted: str = ""
    """A single digit before one of these belongs to no number: "digits", "moment"."""
    named: str = ""
    """The number behind one of these is mostly of that kind, and no card's: "phone", "booking"."""
    measured: str = ""
    """The number before one of these ends there, and is no card's: "people", "euros"."""
    plain: str = ""
    """Neither a filler nor a misheard digit: "until", "today", names of months."""
    apart: str = ""
    """What follows is another number: "or"."""
    card: str = ""
    """Shows that the talk is of a card."""
    card_phrases: tuple[str, ...] = ()
    """Regular expressions for what shows it in several words: "ma carte" ("carte" is a menu, too)."""
    asks_other: tuple[str, ...] = ()
    """Regular expressions for questions of the agent's after which the caller's next number is no part of a card's:
    "how many people"."""
    codes: tuple[str, ...] = ()
    """Regular expressions for what announces a card's expiry date or its code."""


@cache
def digits_file(tag: str) -> DigitsFile:
    """The file of a language that has one. Raises msgspec.ValidationError: it is not right."""
    text = resources.files("voicepipe.languages").joinpath(tag, "digits.toml").read_text("utf-8")
    return msgspec.toml.decode(text, type=DigitsFile)


@cache
def digits_files() -> dict[str, DigitsFile]:
    """The files of all languages that have one, by tag; English first. Raises msgspec.ValidationError."""
    folders = (each for each in resources.files("voicepipe.languages").iterdir() if each.is_dir())
    tags = (each.name for each in folders if each.joinpath("digits.toml").is_file())
    return {tag: digits_file(tag) for tag in sorted(tags, key=lambda tag: (tag != "en", tag))}


def by_value(words: str) -> list[list[str]]:
    """The words for each value, the usual one first."""
    return [every.split("/") for every in words.split()]
