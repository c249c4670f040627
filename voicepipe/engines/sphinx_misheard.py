"""What nobody answers to a question, and so was misheard: what was said instead. Pure."""

from voicepipe.engines.sphinx_answers import possible
from voicepipe.engines.sphinx_names import MEN, SURNAMES, WOMEN
from voicepipe.turn import english
from voicepipe.turn.answers import Wanted, name_given
from voicepipe.turn.completeness import LEADS_ON

PERSONS = frozenset((*MEN, *WOMEN, *SURNAMES))
COUNTED = frozenset((*english.NUMBERS, *english.ORDINALS))
NO_ANSWER = frozenset(
    "who what when where which why how no not wait stop hold sorry "
    "cancel never forget leave bye goodbye thank thanks".split()
)
"""Words that mean something of their own, whatever was asked."""
NO_PART_OF_A_NAME = (LEADS_ON | english.NO_NAME | COUNTED) - {"please"} - NO_ANSWER
KEPT = NO_ANSWER | COUNTED | {*english.WEEKDAYS, *english.MONTHS}
"""And those that mean another value than was found."""
SOUNDS_LIKE: dict[Wanted, dict[str, str]] = {
    "yes": {"us": "yes"},
    "value": {"you": "two", "to you": "two"},
}
"""What is heard of a "yes" said quickly, and of a "two" whose t the room's noise hides. As the whole of an answer to
such a question it means nothing. After "Is that right?" a "you" is no "two": that would change a booking. Nor is "do
you", which begins questions."""


def is_instead(words: str, reading: str) -> bool:
    """Whether `reading` is a value, and may stand in place of `words`, which are none: "just two" of "just you". Not
    "fourteen" of "forty", nor "one" of "when"."""
    return reading in possible() and KEPT.intersection(words.split()) <= set(reading.split())


def is_odd_name(words: str) -> bool:
    """Whether `words`, heard of who was asked for a name, are one name and one word that is part of none: "johnson a"
    of "john smith". Not "may smith", "john and mary" or "john smith at eight"."""
    name = name_given(words)
    return len(name) == 2 and name[0] in PERSONS and name[1] in NO_PART_OF_A_NAME


def is_full_name(words: str, odd: str) -> bool:
    """Whether `words` are two known names, the first of which is the beginning of the `odd` one. Were it the whole, the
    caller may go on ("john and ..."), and a surname would be invented."""
    names, heard = name_given(words), name_given(odd)[0]
    return len(names) == 2 and PERSONS.issuperset(names) and names[0] != heard and heard.startswith(names[0])
