"""After which words callers who speak English end their turns: counted in what they say."""

import functools
import itertools
from collections.abc import Sequence
from importlib import resources
from itertools import takewhile

from voicepipe.languages.en import words as english
from voicepipe.languages.en.caller_sentences import sentences
from voicepipe.languages.en.completeness import COMPLETE_ENDS, DIGITS, PHONE_DIGITS, RULES, SPELLING
from voicepipe.languages.en.sentence_ends import SentenceEnds
from voicepipe.languages.en.words import MONTHS, ORDINALS, UNITS, WEEKDAYS

GRAMMAR = resources.files("voicepipe.languages.en").joinpath("callers.jsgf").read_text()
FILLERS = ("um", "uh")
LAST_WORDS = frozenset(
    "please thanks today tomorrow tonight yesterday here again later people persons guests adults children kids "
    "o'clock pm monday tuesday wednesday thursday friday saturday sunday morning evening afternoon noon midnight "
    "goodbye bye yes yeah yep no nope okay sure right correct exactly perfect great hello hi sorry maybe".split()
)
BEFORE_NUMBERS = frozenset("at for of around about to till until past are with be by between after before and".split())
IN_NUMBERS = frozenset((*english.NUMBERS, "hundred"))
LONG_NUMBER = 3
"""Words: "twenty twenty six", "seven hundred five"."""


@functools.cache
def ordinary() -> tuple[str, ...]:
    """What everybody says on the phone: times, dates, phone numbers, yes and no."""
    hours = UNITS[1:13]
    digits = ["zero", "oh", *UNITS[1:10]]
    said = [
        "yes", "no", "yes please", "no thanks", "no thank you", "hello", "hi", "good morning", "good evening", "okay",
        "thank you very much", "goodbye", "thanks goodbye", "that's right", "that's all", "um", "uh", "well",
    ]  # fmt: skip
    for hour in hours:
        said += [f"at {hour}", f"for {hour}", f"{hour} people", f"{hour} o'clock", f"{hour} thirty"]
        said += [f"half past {hour}", f"{hour} fifteen", f"{hour} p m"]
    for day in WEEKDAYS:
        said += [f"on {day}", day, f"next {day}", f"{day} evening"]
    for month, ordinal in itertools.product(MONTHS, ORDINALS):
        said += [f"the {ordinal} of {month}", f"{month} {ordinal}"]
    # Every digit after every other, in numbers of the usual length.
    for first, step in itertools.product(range(len(digits)), range(len(digits))):
        said.append("my number is " + " ".join(digits[(first + step * i) % len(digits)] for i in range(9)))
    return tuple(said)


@functools.cache
def drawn() -> tuple[str, ...]:
    """Sentences of everyday calls."""
    return sentences(GRAMMAR, FILLERS)


@functools.cache
def callers_ends() -> SentenceEnds:
    """The counts of what all callers say. Takes some 0.3 s the first time."""
    return SentenceEnds([*ordinary(), *drawn()], RULES, closed)


def closed(words: Sequence[str]) -> bool:
    last = words[-1]
    if (
        SPELLING.is_whole(words)
        or last in LAST_WORDS
        or any(" ".join(words[-most:]) in COMPLETE_ENDS for most in (2, 3))
    ):
        return True
    number = sum(1 for _ in takewhile(IN_NUMBERS.__contains__, reversed(words)))
    at_seven = 0 < number < len(words) and words[-1 - number] in BEFORE_NUMBERS
    return (
        at_seven or number >= LONG_NUMBER or (len(words) >= PHONE_DIGITS and DIGITS.issuperset(words[-PHONE_DIGITS:]))
    )
