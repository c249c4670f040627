"""Numbers, days, months and people in English words, and what is no name: for all who read what callers say, and for
what the voice says."""

from voicepipe.languages.digits_file import by_value, digits_file

WEEKDAYS = tuple("monday tuesday wednesday thursday friday saturday sunday".split())
MONTHS = tuple("january february march april may june july august september october november december".split())

_DIGITS = digits_file("en")
UNITS = tuple(words[0] for words in by_value(f"{_DIGITS.units} {_DIGITS.teens}"))
"""0 to 19, each at its own index."""
TENS = {words[0]: 20 + 10 * index for index, words in enumerate(by_value(_DIGITS.tens))}
NUMBERS = {word: number for number, word in enumerate(UNITS)} | TENS
ORDINALS = {
    word: number
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split(),
        1,
    )
} | {"thirtieth": 30}
"""Ordinals that are one word, as far as days of a month go."""

NUMBERED_PLACES = tuple("room suite flight gate platform zip postcode postal".split())
NUMBERED_RECORDS = tuple(
    "booking reservation order confirmation reference ref invoice ticket customer account tracking".split()
)
"""The number behind one of these names a thing: which digits it has is what counts."""

COMPANIONS = tuple(
    "wife husband girlfriend boyfriend partner friend mother father mom dad son daughter colleague".split()
)
"""Words for one person beside the caller."""

NO_NAME = frozenset(
    "a an the you your me my what which when where who how do does did can could would will is are was not no yes well "
    "sure okay ok wait stop hold on let just one moment minute second sec think want need have give tell why sorry i "
    "it that this there please table booking wrong right name".split()
)
"""None of these is part of a person's name."""
