"""Sentences of everyday telephone calls, drawn from a grammar of what callers say. Pure."""

import itertools
import random
import re
from collections.abc import Sequence

SENTENCES = 6000
"""Drawn from the grammar. With 2,000 or 20,000 the ends of sentences are recognised as well."""
FILLED = 0.04
"""Share of the gaps between words in which the caller says a filler."""
RULE = re.compile(r"^(?:public )?<([\w-]+)> = (.*?);", re.DOTALL | re.MULTILINE)
WEIGHTED = re.compile(r"/(\d+)/ ?(.*)")
SYMBOL = re.compile(r"<([\w-]+)>")
NOTHING = "<NULL>"


def sentences(grammar: str, fillers: Sequence[str], count: int = SENTENCES) -> tuple[str, ...]:
    """`count` sentences, always the same, as a recogniser writes words: lower case, no punctuation. `grammar`: with the
    rule <call>; `fillers`: what callers say where they hesitate ("um")."""
    rng = random.Random(0)
    rules = _rules(grammar)

    def said(symbol: str) -> str:
        expansions, weights = rules[symbol]
        (chosen,) = rng.choices(expansions, weights)
        return SYMBOL.sub(lambda found: said(found[1]), chosen)

    def hesitant(text: str) -> str:
        first, *others = text.split() or [""]
        return " ".join([first, *(f"{rng.choice(fillers)} {w}" if rng.random() < FILLED else w for w in others)])

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
