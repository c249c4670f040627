"""How callers say things: sentences by the patterns of callers.toml, punctuated or not, and misheard.

Pure: all chance comes from the `random.Random` that is passed in.
"""

import random
import re
import tomllib
import zlib
from collections.abc import Sequence
from pathlib import Path

WORDS = tomllib.loads((Path(__file__).parent / "callers.toml").read_text())
UTTERANCES = Path(__file__).parents[2] / "latency_probes" / "utterances"
PROBES = {
    text: group["intent"]
    for group in tomllib.loads((UTTERANCES / "sentences.toml").read_text())["finished"]
    for text in group["texts"]
}
"""What the probes say, and what they mean by it."""
JUNK: list[str] = WORDS["junk"]
QUESTION = re.compile(
    r"(what|when|where|who|how|which|why|is|are|do|does|can|could|may|would|will|have|am|at what|until|any)\b"
)
NOISE = (0.0, 0.0, 0.0, 0.1, 0.25)
"""Shares of words that are misheard: one of these for each turn."""
FEW = 3
"""Fewer words than these are heard well, or nobody could tell what was said."""
HOLD_OUT = 10
"""One sentence in so many is never trained on, if it has a few words: of "hello" and "thanks" all depend."""

_CONFUSED = {word: [other for other in group if other != word] for group in WORDS["sounds_like"] for word in group}


def heldout(said: str) -> bool:
    """Whether a sentence is kept to test with: always the same ones, and all that the probes say."""
    return said in PROBES or (len(said.split()) >= FEW and zlib.crc32(said.encode()) % HOLD_OUT == 0)


def sentence(pattern: str, chance: random.Random) -> str:
    """One that `pattern` of callers.toml stands for."""
    while found := re.search(r"\{(\w+)\}|\(([^(){}]*)\)", pattern):
        options = WORDS["parts"][found[1]] if found[1] else found[2].split("|")
        pattern = pattern[: found.start()] + chance.choice(options) + pattern[found.end() :]
    return " ".join(pattern.split())


def framed(said: str, chance: random.Random) -> str:
    """With what people say before and after it."""
    opener = chance.choice(WORDS["openers"]) if chance.random() < 0.3 else ""
    closer = chance.choice(WORDS["closers"]) if chance.random() < 0.2 else ""
    return " ".join(filter(None, (opener, said, closer)))


def misheard(said: str, chance: random.Random, share: float, keep: Sequence[str] = ()) -> str:
    """As a recogniser gets it of which `share` of the words are wrong; words in `keep` stand."""
    heard: list[str] = []
    few = len(said.split()) < FEW
    for word in said.split():
        if few or word in keep or chance.random() >= share:
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
