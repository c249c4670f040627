"""Errors in what an agent's file says of words: how they are said, and which are expected. As `agent_problems`."""

import re
from collections.abc import Iterator

from voicepipe.agent import Agent, Pronunciation
from voicepipe.languages import pronunciation

MOST_WORDS, LONGEST_WORD = 50, 60
"""Limits of a vocabulary: a recogniser reads all of it each time that it listens."""
FIRST = "above the file's first [table]"
"""Where in a file the keys of the agent itself belong."""


def of_words(agent: Agent) -> Iterator[str]:
    """Problems of `pronounce` and of `vocabulary`."""
    yield from _of_pronounce(agent)
    yield from _of_vocabulary(agent)


def _of_pronounce(agent: Agent) -> Iterator[str]:
    seen: dict[str, str] = {}
    for word, entry in agent.pronounce.items():
        at, said, key = f"pronounce.{word}", Pronunciation.of(entry), pronunciation.folded(word)
        if word in Agent.__struct_fields__:
            yield f"{at}: is a key of the agent; put it {FIRST}. If you mean the word, write it with a capital"
        if not re.search(r"\w", word):
            yield f"pronounce: {word!r} is no word"
        if first := seen.get(key):
            yield f"{at}: is the same word as {first}: case makes no difference; keep one of the two"
        seen.setdefault(key, word)
        if not said.spelling.strip() and not said.ipa.strip():
            yield f'{at}: is empty; give a spelling, as "Shivawn", or IPA between slashes, as "/ʃɪˈvɔːn/"'
        if unknown := pronunciation.unknown_ipa(said.ipa):
            yield f"{at}: {' '.join(unknown)} is no sign of the IPA; a spelling has no slashes around it"


def _of_vocabulary(agent: Agent) -> Iterator[str]:
    if len(agent.vocabulary) > MOST_WORDS:
        yield (
            f"vocabulary: cannot have {len(agent.vocabulary)} entries; at most {MOST_WORDS}: keep what callers "
            "say and the recogniser gets wrong"
        )
    for index, word in enumerate(agent.vocabulary):
        if not (re.search(r"\w", word) and word.isprintable() and len(word) <= LONGEST_WORD):
            yield f"vocabulary[{index}]: cannot be {word!r}; give a word or a name of up to {LONGEST_WORD} characters"
