"""What callers answer when they are asked something: words for the decoder, for as long as the question stands. Pure.

"Four" and "for" sound the same, and newspapers, from which the general language model comes, have "for" more often. Few
people's names are in newspapers. So what the agent has asked tells which words are likely (`turn/answers.py`).
"""

import functools
import random
from collections.abc import Iterator, Sequence

from voicepipe.engines.sphinx_language import arpa
from voicepipe.engines.sphinx_names import MEN, SURNAMES, WOMEN
from voicepipe.turn import english
from voicepipe.turn.answers import Wanted

WEIGHTS: dict[Wanted, tuple[float, float]] = {
    "": (0, 0),
    "yes": (0.2, 0.1),
    "value": (0.3, 0),
    "name": (0, 0.3),
    "digits": (0, 0),  # A second search finds them: `sphinx_numbers.py`.
}
"""Shares of `values` and of `names` in the decoder's language model, by what is asked for. More is no better. Who is
asked whether all is right may say "no, my name is ..."."""
BARE = 10
"""A value alone is so much more frequent than each sentence around it."""
MOST = 30
"""The most frequent name is there so many times."""
PLAIN = 0.9
"""Of the mass after a history for what was seen after it: values have few wordings, ..."""
ANY_PAIR = 0.5
"""... but any first name may stand before any surname."""


@functools.cache
def values_arpa() -> str:
    """The model of `values`."""
    return arpa([*values()], seen=PLAIN)


@functools.cache
def names_arpa() -> str:
    """The model of `names`."""
    return arpa([*names()], seen=ANY_PAIR)


@functools.cache
def possible() -> frozenset[str]:
    """All of `values`."""
    return frozenset(values())


def values() -> Iterator[str]:
    """Numbers of people, days, times, yes and no, each as often as it is likely."""
    yield from _counts()
    yield from _days()
    yield from _times()
    yield from _yes_and_no()


def names() -> Iterator[str]:
    """Persons' names, with what is said before them, each as often as it is likely."""
    leads = ("", "", "", "it's ", "my name is ", "the name is ", "under ", "i'm ", "this is ")
    firsts, lasts = [*_by_rank(MEN), *_by_rank(WOMEN)], [*_by_rank(SURNAMES)]
    mixed = random.Random(0)
    mixed.shuffle(firsts)
    mixed.shuffle(lasts)
    for number, first in enumerate(firsts):
        yield f"{leads[number % len(leads)]}{first} {lasts[number % len(lasts)]}"
    yield from (*MEN, *WOMEN, *SURNAMES)


def _by_rank(frequent: Sequence[str]) -> Iterator[str]:
    """Names in the order of their frequency, the tenth a quarter as often as the first: an assumption, no census."""
    for rank, name in enumerate(frequent, 1):
        yield from [name] * max(1, round(MOST / rank**0.6))


def _counts() -> Iterator[str]:
    for number in english.UNITS[1:]:
        yield from [number] * BARE
        yield from (f"for {number}", f"{number} people", f"for {number} people", f"{number} please")
        yield from (f"for {number} please", f"{number} people please", f"{number} of us", f"just {number}")
        yield from (f"just {number} of us", f"we are {number}", f"we'll be {number}", f"a table for {number}")
        yield from (f"there will be {number} of us", f"{number} guests", f"{number} persons", f"it's for {number}")
    yield from ("just me", "only me", "a couple", "just myself", "me and my wife", "my wife and i")
    yield from ("two adults and one child", "two adults and two children")


def _days() -> Iterator[str]:
    for day in english.WEEKDAYS:
        yield from [day, f"on {day}"] * BARE
        yield from (f"this {day}", f"next {day}", f"on {day} evening", f"{day} evening", f"{day} night")
        yield from (f"{day} please", f"on {day} please")
    for day in ("today", "tomorrow", "tonight"):
        yield from [day] * BARE
        yield f"{day} please"
    yield from ("tomorrow evening", "tomorrow night", "tomorrow afternoon", "this evening", "the day after tomorrow")
    for ordinal in english.ORDINALS:
        yield from (f"the {ordinal}", f"on the {ordinal}")
    for number, ordinal in enumerate([*english.ORDINALS] * 3):  # Every month stands behind ordinals enough.
        month = english.MONTHS[number % len(english.MONTHS)]
        yield (f"the {ordinal} of {month}", f"on the {ordinal} of {month}", f"{month} {ordinal}")[number % 3]


def _times() -> Iterator[str]:
    for hour in english.UNITS[1:13]:
        yield from [hour, f"at {hour}"] * BARE
        for time in (
            f"{hour} o'clock", f"half past {hour}", f"quarter past {hour}", f"quarter to {hour}", f"{hour} thirty",
            f"{hour} fifteen", f"{hour} forty five", f"{hour} p m",
        ):  # fmt: skip
            yield from (time, f"at {time}")
        yield from (f"around {hour}", f"about {hour}", f"{hour} please", f"at {hour} please", f"{hour} o'clock please")
        yield from (f"in the evening at {hour}", f"{hour} in the evening", f"at {hour} in the evening")
    yield from ("noon", "at noon", "midday", "at midday", "midnight")


def _yes_and_no() -> Iterator[str]:
    yield from ["yes", "no", "yes please"] * BARE
    yield from (
        "that's right", "yes that's right", "yes it is", "that's correct", "yes that's correct", "correct", "right",
        "okay", "sure", "yeah", "yep", "perfect", "great", "fine", "that's fine", "yes that's fine", "exactly",
        "yes exactly", "of course", "go ahead", "please do", "all right", "yes thank you", "yes thanks", "yes i do",
        "no thanks", "no thank you", "no i don't", "nope",
    )  # fmt: skip
    for value in (
        *(f"for {number}" for number in english.UNITS[1:13]),
        *(f"at {hour}" for hour in english.UNITS[1:13]),
        *(f"on {day}" for day in english.WEEKDAYS),
    ):
        yield from (f"no {value}", f"yes but {value}", f"yes {value}")
