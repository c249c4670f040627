"""What callers say: sentences of everyday telephone calls, drawn from a grammar, and dates, times and numbers."""

import functools
import itertools
import random
import re
from importlib import resources

from voicepipe.conversation.english import MONTHS, ORDINALS, UNITS, WEEKDAYS

SENTENCES = 6000
"""Drawn from the grammar. With 2,000 or 20,000 the ends of sentences are recognised as well."""
FILLED = 0.04
"""Share of the gaps between words in which the caller says "um" or "uh"."""
RULE = re.compile(r"^(?:public )?<([\w-]+)> = (.*?);", re.DOTALL | re.MULTILINE)
WEIGHTED = re.compile(r"/(\d+)/ ?(.*)")
SYMBOL = re.compile(r"<([\w-]+)>")
NOTHING = "<NULL>"
GRAMMAR = resources.files("voicepipe.turn").joinpath("callers.jsgf").read_text()


@functools.cache
def sentences(count: int = SENTENCES) -> tuple[str, ...]:
    """`count` sentences, always the same, as a recogniser writes words: lower case, no punctuation."""
    rng = random.Random(0)
    rules = _rules(GRAMMAR)

    def said(symbol: str) -> str:
        expansions, weights = rules[symbol]
        (chosen,) = rng.choices(expansions, weights)
        return SYMBOL.sub(lambda found: said(found[1]), chosen)

    def hesitant(text: str) -> str:
        first, *others = text.split() or [""]
        return " ".join([first, *(f"{rng.choice(('um', 'uh'))} {w}" if rng.random() < FILLED else w for w in others)])

    drawn = (hesitant(said("call")) for _ in itertools.count())
    return tuple(itertools.islice(filter(None, drawn), count))


def _rules(grammar: str) -> dict[str, tuple[list[str], list[int]]]:
    """Each rule's name -> its expansions, and the weight of each. Reads a part of the JSpeech Grammar Format (W3C,
    2000): rules, alternatives, weights and <NULL>."""
    rules: dict[str, tuple[list[str], list[int]]] = {}
    for name, body in RULE.findall(grammar):
        alternatives = " ".join(body.split()).replace(NOTHING, "").split("|")
        weighted = [WEIGHTED.fullmatch(each.strip()) or (None, 1, each.strip()) for each in alternatives]
        rules[name] = [each[2] for each in weighted], [int(each[1]) for each in weighted]
    return rules


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
