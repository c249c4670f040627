"""What is taken out of calls before anything of them is kept, and the check of one's own patterns."""

import math
import re
from collections.abc import Iterable
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from voicepipe.ranges import Section

LONGEST = 2000
"""Characters of a text that is kept."""
MOST_WAYS = 10_000
"""In which a pattern may be tried from one place of a text of that length: then the worst text takes it some 0.2 s, and
most take it microseconds."""
MOST_DIGITS = 12
"""Of numbers of ways: larger ones are not told apart."""


class RedactionConfig(Section, frozen=True):
    cards: bool = True
    """Card numbers, in digits and in words, over several turns; with them expiry dates and security codes."""
    keys: bool = True
    """What callers press on their telephones."""
    patterns: tuple[str, ...] = ()
    r"""Regular expressions of one's own; each match is taken out. They run on the event loop, so one that some text
    could keep busy for long is refused: write \d{1,30} in place of \d+."""
    transcripts: bool = True
    """False: nobody's words are kept, nor what tools were asked and answered."""

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            try:
                re.compile(pattern)
                tried = ways(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise ValueError(f"patterns: {pattern!r} is no regular expression: {error}") from None
            if tried > MOST_WAYS:
                raise ValueError(
                    f"patterns: {pattern!r} could keep the server busy for long with an unlucky text; limit its "
                    r"repetitions (\d{1,30} in place of \d+), and put none inside another"
                )


USUAL = RedactionConfig()
"""What is taken out where nobody has said anything else."""


def ways(pattern: str) -> float:
    """At most so many ways are tried to match the pattern from one place of a text of `LONGEST` characters."""
    return _of_all(parser.parse(pattern))


def _of_all(items: Iterable[Any]) -> float:
    product = 1.0
    for code, what in items:
        product *= _of_one(code, what)
    return min(product, 10.0**MOST_DIGITS)


def _of_one(code: object, what: Any) -> float:
    match code:
        case codes.BRANCH:
            return sum(map(_of_all, what[1]))
        case codes.SUBPATTERN:
            return _of_all(what[3])
        case codes.ATOMIC_GROUP:
            return _of_all(what)
        case codes.ASSERT | codes.ASSERT_NOT:
            return _of_all(what[1])
        case codes.GROUPREF_EXISTS:
            return _of_all(what[1]) + _of_all(what[2] or ())
        case codes.MAX_REPEAT | codes.MIN_REPEAT | codes.POSSESSIVE_REPEAT:
            least, most, inner = what
            each, most = _of_all(inner), min(int(most), LONGEST)
            lengths = most - min(int(least), most) + 1
            return lengths * 10 ** min(math.log10(each) * most, MOST_DIGITS)
    return 1
