"""Written English -> spoken English: which forms there are, and which is looked for first.

Whatever contains another form stands before it: a range before its ends, a date before the numbers of which it is made.
"""

from voicepipe.languages.en.verbaliser import (
    abbreviations,
    addresses,
    calendar,
    clock,
    codes,
    measures,
    money,
    quantities,
    telephone,
)
from voicepipe.languages.written_form import WrittenForm

ENGLISH: tuple[WrittenForm, ...] = (
    *addresses.FORMS,
    *quantities.ARITHMETIC,
    *telephone.DIALLED,
    *clock.FORMS,
    *calendar.FORMS,
    *addresses.VERSIONS,
    *money.FORMS,
    *codes.NAMES,
    *measures.FORMS,
    *quantities.SPECIAL,
    *telephone.GROUPED,
    *calendar.YEARS,
    *codes.MIXED,
    *quantities.NUMBERS,
    *abbreviations.FORMS,
    *quantities.SIGNS,
)
