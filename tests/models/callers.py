"""How callers say things: the agent's example sentences said in other words, punctuated or not, and misheard.

Pure: all chance comes from the `random.Random` that is passed in.
"""

import random
import re
import tomllib
import zlib
from collections.abc import Sequence
from pathlib import Path

WORDS = tomllib.loads((Path(__file__).parent / "callers.toml").read_text())
JUNK: list[str] = WORDS["junk"]
QUESTION = re.compile(
    r"(what|when|where|who|how|which|why|is|are|do|does|can|could|may|would|will|have|am|at what|until|any)\b"
)
NOISE = (0.0, 0.0, 0.0, 0.1, 0.25)
"""Shares of words that are misheard: one of these for each turn."""
HOLD_OUT = 10
"""One sentence in so many is never trained on."""

_ALTERNATIVES = [(re.compile(rf"\b{re.escape(one)}\b"), group) for group in WORDS["other_words"] for one in group]
_CONFUSED = {word: [other for other in group if other != word] for group in WORDS["sounds_like"] for word in group}


def split(sentences: Sequence[str], *, held_out: bool) -> list[str]:
    """Those to train on, or those to test with: always the same ones."""
    order = sorted(sentences, key=lambda said: zlib.crc32(said.encode()))
    tested = -(-len(order) // HOLD_OUT)
    return order[:tested] if held_out else order[tested:]


def reworded(said: str, chance: random.Random) -> str:
    """`said` with up to two of its phrases taken for others."""
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        fits = [(pattern, group) for pattern, group in _ALTERNATIVES if pattern.search(said)]
        if fits:
            pattern, group = chance.choice(fits)
            said = pattern.sub(chance.choice(group), said, count=1)
    return said


def framed(said: str, chance: random.Random) -> str:
    """With what people say before and after it."""
    opener = chance.choice(WORDS["openers"]) if chance.random() < 0.3 else ""
    closer = chance.choice(WORDS["closers"]) if chance.random() < 0.2 else ""
    return " ".join(filter(None, (opener, said, closer)))


def misheard(said: str, chance: random.Random, share: float, keep: Sequence[str] = ()) -> str:
    """As a recogniser gets it of which `share` of the words are wrong; words in `keep` stand."""
    heard: list[str] = []
    for word in said.split():
        if word in keep or chance.random() >= share:
            heard.append(word)
            continue
        kind = chance.random()
        if kind < 0.2:
            continue
        if kind < 0.35:
            heard += [chance.choice(JUNK), word]
        elif kind < 0.7 and word in _CONFUSED:
            heard.append(chance.choice(_CONFUSED[word]))
        elif kind < 0.85:
            heard.append(_mangled(word, chance))
        else:
            heard.append(chance.choice(JUNK))
    return " ".join(heard) or said


def written(said: str, chance: random.Random) -> str:
    """As recognisers write that punctuate."""
    text = re.sub(r"\bi\b", "I", said)
    text = re.sub(
        r"\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday|christmas|harbour)\b",
        lambda day: day[0].capitalize(),
        text,
    )
    text = re.sub(r"^(hi|hello|hey|yes|okay|well|excuse me|um|thanks|thank you|no|sorry) (?=\w)", r"\1, ", text)
    text = re.sub(r" (please|thanks|thank you)$", r", \1", text)
    end = "?" if QUESTION.match(said) else chance.choice((".", ".", ".", "!", ""))
    return text[:1].upper() + text[1:] + end


def spoken(said: str, chance: random.Random, keep: Sequence[str] = (), noise: Sequence[float] = NOISE) -> str:
    """As it reaches the model: by a recogniser that punctuates or by one that does not, well or badly heard."""
    said = misheard(said, chance, chance.choice(noise), keep)
    return written(said, chance) if chance.random() < 0.4 else said


def unclear(chance: random.Random) -> str:
    """Something that nobody could answer."""
    kind = chance.random()
    if kind < 0.6:
        return str(chance.choice(WORDS["unclear"]))
    if kind < 0.9:
        return " ".join(chance.choices(JUNK, k=chance.randint(1, 6)))
    return chance.choice(("", " ", "?!", "...", "xxxx" * chance.randint(1, 12), "\0", "%&$", "äöü", "12 34"))


def _mangled(word: str, chance: random.Random) -> str:
    """One sound of it gone, doubled or another."""
    if len(word) < 3:
        return word
    at = chance.randrange(len(word))
    other = chance.choice("aeiou" if word[at] in "aeiou" else "bdfgklmnprstw")
    return chance.choice((word[:at] + word[at + 1 :], word[:at] + other + word[at + 1 :], word + "s", word[:-1]))
