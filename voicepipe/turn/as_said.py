"""What a recogniser wrote -> the words that were said: "At 7.30, Mr. Jones?" is "at seven thirty mr jones". English.

Recognisers write "730", "7:30" and "seven thirty" for the same, "5550142" and "555-0142" too. Whoever reads callers'
words reads them in this one form, in small letters, and knows no other. Most of it is what the voice does with written
text (`speakable`); here is what callers say and nobody writes on purpose.
"""

import re
from functools import lru_cache

from voicepipe.turn.english import NUMBERS, UNITS
from voicepipe.turn.speakable import speakable
from voicepipe.turn.verbaliser.codes import NAMED, NAMED_LONG
from voicepipe.words import plain

LONGEST = 2000
"""Characters. Nobody says more in a turn; of a longer text numbers stay as they are written."""
WRITTEN = re.compile(r"[^\s\w.,?!;:'’\"-]|[0-9]|\b[ap]\.?m\b|\w\.\w", re.IGNORECASE)
"""Only with one of these a text has more than words in it."""
TELEPHONE = 6
"""Digits of a telephone number, at least."""

_COUNTED = (
    r"(?:people|persons?|guests?|adults?|children|kids|of us|seats?|friends|dollars?|euros?|pounds?|cents?|bucks|"
    r"percent|times|min(?:ute)?s?|days?|weeks?|months?|years?|miles?|met(?:er|re)s?|kilomet(?:er|re)s?|pieces|tickets?)"
)
"""What there may be 730 of."""
_DUE = re.compile(r"\b(?:at|by|around|about|until|till?|before|after|from|past)\s*$", re.IGNORECASE)
"""Before a time of day."""
_CLOCK = re.compile(
    r"(?<![\w$€£#.,:/-])(?<![0-9] )(?P<hour>1[0-9]|2[0-4]|[1-9])(?P<mark>[.]?)(?P<minute>[0-5][05])"
    rf"(?:(?P<sure> ?(?P<half>[ap])[.]?m\b[.]?| ?hours\b)|(?![\w%€£]|[ .,:/-][0-9]| {_COUNTED}\b))",
    re.IGNORECASE,
)
"""A time without its colon."""
_PLAIN_MINUTES = ("05", "10", "15", "20", "30", "40", "45", "50")
"""Others are no time unless something says so: "555", "800"."""

_TOKEN = r"[0-9o]*[0-9][0-9o]*"
_DIGITS = re.compile(
    rf"(?<![\w$€£.,:/-]){_TOKEN}(?:[ -]{_TOKEN}|-o+)*(?![\w%€£]|[.,:/][0-9]|-\w| {_COUNTED}\b)", re.IGNORECASE
)
"""Groups of digits, in which an "o" is a zero."""
_NO = re.compile(r"(?:(?<=^)|(?<=[.?!] ))(no)[.](?= ?[0-9])", re.IGNORECASE)
"""An answer before a number, and not short for "number"."""

_HOURS = "|".join(UNITS[1:13])
_MISHEARD = {
    "one": "won", "two": "to|too", "three": "tree", "four": "for|fore", "six": "sex|sick|sicks", "eight": "ate|date|ace|a",
    "ten": "tan|tin|then",
}  # fmt: skip
SPELLINGS = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (r"\bok\b", "okay"),
        (r"\balright\b", "all right"),
        (r"\bmister\b", "mr"),
        (r"\bmissus\b", "mrs"),
        (r"\boclock\b", "o'clock"),
        (r"\b(?:mm?|m?hm+|mhm)(?: ?(?:mm?|h+m+)\b)", "mm hmm"),
        (r"\b(?:aha|u?h ?huh)\b", "uh huh"),
        (rf"\b((?:{'|'.join(NUMBERS)}|o'clock)) ([ap])m\b", r"\1 \2 m"),
        (r"\ba ?pm\b", "eight p m"),
        # Words that sound alike, where only one of them is said.
        (r"^know\b", "no"),
        (r"^write$", "right"),
        (rf"\b(?:half|have|had|hard) (?:past|pass|passed|path)(?= (?:{_HOURS}|{'|'.join(_MISHEARD.values())})\b)",
         "half past"),
        (r"\bquarter (?:pass|passed|path)\b", "quarter past"),
        *((rf"(^|\b(?:for|of) )(?:{heard})(?= (?:people|persons|guests|adults)\b)", rf"\1{number}")
          for number, heard in _MISHEARD.items()),
        *((rf"\b(half|quarter|five|ten|twenty) past (?:{heard})\b", rf"\1 past {hour}")
          for hour, heard in _MISHEARD.items()),
    )
)  # fmt: skip
"""Other ways to write words, and the one that is taken."""


@lru_cache(maxsize=256)
def as_said(text: str, *, dictated: bool = False) -> str:
    """The words of `text` as they were said, without case and punctuation. `dictated`: a telephone number or the like
    was asked for, and 730 is three digits.

    Kept, because each text is read several times."""
    written = text
    if len(text) <= LONGEST and WRITTEN.search(text):
        written = _NO.sub(r"\1,", text)
        if not dictated:
            written = _CLOCK.sub(_time, written)
        written = speakable(_DIGITS.sub(lambda found: _digits(found, dictated=dictated), written))
    said = plain(written)
    for pattern, into in SPELLINGS:
        said = pattern.sub(into, said)
    return said


def _time(found: re.Match[str]) -> str:
    """730 PM -> 7:30 pm."""
    before = found.string[max(0, found.start() - 40) : found.start()]
    sure = found["sure"] or _DUE.search(before)
    if (found["minute"] not in _PLAIN_MINUTES and not sure) or NAMED.search(before) or NAMED_LONG.search(before):
        return found[0]
    half = f" {found['half']}m" if found["half"] else ""
    return f"{found['hour']}:{found['minute']}{half}" + (found["sure"] if found["sure"] and not half else "")


def _digits(found: re.Match[str], *, dictated: bool) -> str:
    """555-0142, 5-55 0142 -> 5 5 5 0 1 4 2; numbers that are no telephone number's stay."""
    groups = re.split("[ -]", found[0].lower().replace("o", "0"))
    number = "".join(groups)
    whole = len(groups) == 1 and len(number) < TELEPHONE
    if dictated or len(number) >= TELEPHONE or "o" in found[0].lower():
        apart = True
    elif whole:
        year = len(number) == 4 and number[:2] in ("19", "20")
        apart = len(number) > 2 and not number.endswith("00") and not year
    else:
        apart = "-" in found[0] and max(map(len, groups)) > 2
    return " ".join(UNITS[int(digit)] for digit in number) if apart else found[0]
