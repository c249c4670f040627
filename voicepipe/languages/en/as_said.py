"""What a recogniser wrote -> the words that were said: "At 7.30, Mr. Jones?" is "at seven thirty mr jones". English.

Recognisers write "730", "7:30" and "seven thirty" for the same, "5550142" and "555-0142" too. Whoever reads callers'
words reads them in this one form, in small letters, and knows no other. Most of it is what the voice does with written
text (`speakable`); here is what callers say and nobody writes on purpose.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from voicepipe.base.words import plain
from voicepipe.languages.en.completeness import NUMBER_OF
from voicepipe.languages.en.forms import FORMS
from voicepipe.languages.en.verbaliser.codes import NAMED, NAMED_LONG
from voicepipe.languages.en.words import MONTHS, NUMBERS, ORDINALS, UNITS
from voicepipe.languages.spoken_pieces import pieces_by, together
from voicepipe.languages.written_form import CURRENCY, before

LONGEST = 2000
"""Characters. Nobody says more in a turn; a longer text stays as it is written."""
WRITTEN = re.compile(r"[^\s\w.,?!;:'’\"-]|[0-9]|\b[ap]\.?m\b|\w\.\w", re.IGNORECASE)
"""Only with one of these a text has more than words in it."""
TELEPHONE = 6
"""Digits of a telephone number, at least."""

_COUNTED = (
    "(?:people|persons?|guests?|adults?|children|kids|of us|seats?|friends|dollars?|euros?|pounds?|cents?|bucks|"
    "percent|times|min(?:ute)?s?|days?|weeks?|months?|years?|miles?|met(?:er|re)s?|kilomet(?:er|re)s?|pieces|tickets?)"
)
"""Nouns of which there may be 730."""
_NO_PART = rf"(?![\w%{CURRENCY}]|[ .,:/-][0-9]| {_COUNTED}\b)"
"""Behind a number that is whole, and counts nothing."""
_DUE = re.compile(r"\b(?:at|by|around|about|until|till?|before|after|from|past)\s*$", re.IGNORECASE)
"""Before a time of day."""
_CLOCK = re.compile(
    rf"(?<![\w{CURRENCY}#.,:/-])(?<![0-9] )(?P<hour>1[0-9]|2[0-4]|[1-9])(?P<mark>[.]?)(?P<minute>[0-5][05])"
    rf"(?:(?P<sure> ?(?P<half>[ap])[.]?m\b[.]?| ?hours\b)|{_NO_PART})",
    re.IGNORECASE,
)
"""A time without its colon."""
_PLAIN_MINUTES = ("05", "10", "15", "20", "30", "40", "45", "50")
"""Minutes that make three digits a time. Others are no time unless something says so: "555", "800"."""

_GROUP = "(?=o*[0-9])[0-9o]++"
_DIGITS = re.compile(
    rf"(?<![\w{CURRENCY}.,:/-]){_GROUP}(?:[ -]{_GROUP}|-o++)*(?![\w%{CURRENCY}]|[.,:/][0-9]|-\w| {_COUNTED}\b)",
    re.IGNORECASE,
)
"""Groups of digits, in which an "o" is a zero."""
_NO = re.compile(r"(?:^|(?<=[.?!] ))(no)[.](?= ?[0-9])", re.IGNORECASE)
"""An answer before a number, and not short for "number"."""

_MISHEARD = {
    "won": "one", "to": "two", "too": "two", "tree": "three", "for": "four", "fore": "four", "sex": "six",
    "sick": "six", "ate": "eight", "date": "eight", "ace": "eight", "tan": "ten", "tin": "ten", "then": "ten",
}  # fmt: skip
"""Words that are misheard numbers, where only a number is said."""
_HEARD = "|".join(_MISHEARD)
_ORDINAL = rf"(?:(?:twenty|thirty) )?(?:{'|'.join(ORDINALS)})"
_NUMBER = "|".join((*UNITS[1:13], *_MISHEARD))


def _number(found: re.Match[str]) -> str:
    return f"{found[1]}{_MISHEARD[found[2]]}"


SPELLINGS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (r"\b(?:ok|okey)\b", "okay"),
        (r"\balright\b", "all right"),
        (r"\b(harb|col|fav|neighb|flav|hon|lab)our", r"\1or"),
        (r"\bmister\b", "mr"),
        (r"\bmissus\b", "mrs"),
        (r"\boclock\b", "o'clock"),
        (r"\b(?:mh+m+|m+ ?h+m+)\b", "mm hmm"),
        (r"\b(?:aha|uh ?huh)\b", "uh huh"),
        (rf"\b({'|'.join(NUMBERS)}|o'clock) ([ap])m\b", r"\1 \2 m"),
        (rf"\b({'|'.join(MONTHS)}) (?:the )?({_ORDINAL})\b", r"\2 of \1"),
        (rf"(?<!the )(?<!twenty )(?<!thirty )\b({_ORDINAL}) (?:of )?({'|'.join(MONTHS)})\b", r"the \1 of \2"),
        # Words that sound alike, where only one of them is said.
        (r"\ba ?pm\b", "eight p m"),
        (r"^know\b", "no"),
        (r"^weight\b", "wait"),
        (r"^write$", "right"),
        (rf"\b(?:half|have|had|hard) (?:past|pass|passed|path)(?= (?:{_NUMBER})\b)", "half past"),
        (r"\bquarter (?:pass|passed|path)\b", "quarter past"),
        (r"\bfor(?= people(?:$| (?:on|at|please|tomorrow|tonight|today|this|next)\b))", "four"),
        (rf"\b((?:half|quarter|five|ten|twenty) past )({_HEARD})\b", _number),
        (rf"(^|\b(?:for|of) )({_HEARD})(?= (?:people|persons|guests|adults)\b)", _number),
    )
)  # fmt: skip
"""Other ways to write words, and the one that is taken."""


@lru_cache(maxsize=256)
def as_said(text: str, *, dictated: bool = False) -> str:
    """The words of `text` as they were said, without case and punctuation. `dictated`: a telephone number or the like
    was asked for, and 730 is three digits, if nobody says "at 730".

    Kept, because each text is read several times."""
    if len(text) > LONGEST:
        return plain(text)
    written = text
    if WRITTEN.search(text):
        written = _CLOCK.sub(lambda found: _time(found, dictated=dictated), _NO.sub(r"\1,", text))
        written = together(pieces_by(FORMS, _DIGITS.sub(lambda found: _digits(found[0], dictated=dictated), written)))
    said = plain(written) or plain(text)
    for pattern, into in SPELLINGS:
        said = pattern.sub(into, said)
    return said


def _time(found: re.Match[str], *, dictated: bool) -> str:
    """730 PM -> 7:30 pm; 1800 hours -> 18:00 hours. What may be none stays."""
    led_by = before(found)
    sure = found["sure"] or _DUE.search(led_by)
    likely = sure or (not dictated and found["minute"] in _PLAIN_MINUTES)
    if not likely or any(names.search(led_by) for names in (NAMED, NAMED_LONG, NUMBER_OF)):
        return found[0]
    behind = f" {found['half']}m" if found["half"] else found["sure"] or ""
    return f"{found['hour']}:{found['minute']}{behind}"


def _digits(written: str, *, dictated: bool) -> str:
    """555-0142, 5-55 0142 -> five five five zero one four two; numbers that are no telephone number's stay."""
    groups = re.split("[ -]", written.lower().replace("o", "0"))
    number = "".join(groups)
    if dictated or len(number) >= TELEPHONE or "o" in written.lower():
        apart = True
    elif len(groups) > 1:
        apart = max(map(len, groups)) > 2
    else:
        year = len(number) == 4 and number.startswith(("19", "20"))
        apart = len(number) > 2 and not number.endswith("00") and not year
    return " ".join(UNITS[int(digit)] for digit in number) if apart else written
