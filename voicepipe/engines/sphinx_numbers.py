"""Numbers that are dictated: telephone, order or card numbers. Pure.

A language model of English makes words of quick digits: "a cake" of "eight eight", "of you" of "oh two". Where most
words that were heard are digits, or two in five where digits were asked for, the sound is searched once more for
nothing but digits.
"""

import functools
import itertools

DIGITS = "zero oh one two three four five six seven eight nine".split()
SOUND_ALIKE = frozenset("o to too for won ate".split())
LEAD = "my number is"
"""Any other words before a number, known to this search, would be found where digits were said."""
LENGTHS = (4, 7, 10)
"""Of parts and wholes of telephone numbers."""
LEAST, SHARE = 4, 2 / 3
"""So many words behind the lead are digits, and such a part of all."""
LEAST_ASKED, SHARE_ASKED = 3, 2 / 5
"""The same where digits were asked for: other words are most likely digits, too. But so many sound like nothing else:
"no for two at eight" is another answer."""


def is_dictated(text: str, *, asked: bool = False) -> bool:
    """Whether `text`, as the recogniser heard it, is mostly digits, and nothing else is said beside them. `asked`: the
    agent asked for digits."""
    words = text.removeprefix(LEAD).split()
    digits = [word in DIGITS or word in SOUND_ALIKE for word in words]
    if asked:
        sure = sum(word in DIGITS for word in words)
        return sure >= LEAST_ASKED and sum(digits) >= SHARE_ASKED * len(digits)
    return sum(digits) >= max(LEAST, SHARE * len(digits)) and digits[0]


@functools.cache
def dictated() -> tuple[str, ...]:
    """Sentences in which every digit stands after every other, with what is said before a number."""
    numbers = [
        " ".join(itertools.islice(itertools.cycle((first, second)), length))
        for first, second in itertools.product(DIGITS, DIGITS)
        for length in LENGTHS
    ]
    numbers += [f"{times} {digit} {digit}" for times in ("double", "triple") for digit in DIGITS]
    return tuple(f"{lead} {number}".strip() for lead in ("", LEAD) for number in numbers)
