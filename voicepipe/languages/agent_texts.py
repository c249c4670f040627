"""An agent's texts in its language: what it says of itself where its file has nothing else (`language.AgentTexts`)."""

from collections.abc import Collection, Iterator
from typing import Any

from msgspec.structs import replace

from voicepipe.agent import Agent, Intent
from voicepipe.languages.en.language import ENGLISH, TEXTS
from voicepipe.languages.known import language_of
from voicepipe.languages.language import AgentTexts
from voicepipe.languages.tags import primary

KEYS = tuple(key for key in AgentTexts.__struct_fields__ if key in Agent.__struct_fields__)
"""Keys of an agent's file that have a default in each language. `denied` is a key of intents, and the others of
`AgentTexts` have none."""
OF_TRANSFERS = ("transfer_failed", "cannot_transfer")
"""Said only by an agent that has somebody to transfer a caller to, or to hand one over to."""


def texts_in(tag: str) -> AgentTexts:
    """The texts of a language; English ones where it has none of its own."""
    return language_of(tag).texts or TEXTS


def in_language(agent: Agent, tag: str) -> Agent:
    """The agent with `language` = `tag` (BCP 47). A text that is the default of its old language becomes the default of
    the new one; any other stays as it is. What its examples teach is not learnt again: they are the same objects."""
    old, new = texts_in(agent.language), texts_in(tag)
    if old is new:
        return agent if agent.language == tag else replace(agent, language=tag)
    texts: dict[str, Any] = {key: getattr(new, key) for key in KEYS if getattr(agent, key) == getattr(old, key)}
    intents = tuple(_denied(intent, old.denied, new.denied) for intent in agent.intents)
    return replace(agent, language=tag, intents=intents, **texts)


def _denied(intent: Intent, old: str, new: str) -> Intent:
    return replace(intent, denied=new) if intent.denied == old else intent


def with_default_texts(agent: Agent, given: Collection[str]) -> Agent:
    """The agent as it is read from its file, with the texts of its language in place of those that the file does not
    give. `given`: the file's keys."""
    spoken = in_language(replace(agent, language=ENGLISH.tag), agent.language)
    return replace(spoken, **{key: getattr(agent, key) for key in KEYS if key in given})


def left_in_english(agent: Agent) -> list[str]:
    """Keys of the texts that stay English though the agent's language is another: that language has none of its own,
    and the agent's file does not give them."""
    language = language_of(agent.language)
    if language.texts is not None or primary(agent.language) == ENGLISH.tag:
        return []
    return list(_english(agent))


def _english(agent: Agent) -> Iterator[str]:
    passes_on = bool(agent.transfer or agent.hand_over)
    for key in KEYS:
        if getattr(agent, key) == getattr(TEXTS, key) and (passes_on or key not in OF_TRANSFERS):
            yield key
    for number, intent in enumerate(agent.intents):
        if intent.confirm and intent.denied == TEXTS.denied:
            yield f"intents[{number}].denied"


def unspoken_texts(agent: Agent) -> Iterator[str]:
    """A line for each of the agent's languages in which some of its texts are not, with the keys and what helps."""
    if english := left_in_english(agent):
        yield (
            f"Agent {agent.name} says {', '.join(english)} in English, since voicepipe has no texts in "
            f"{agent.language!r} (language): give these keys in its file"
        )
    for tag in agent.spoken:
        if primary(tag) == primary(agent.language):
            continue
        its = in_language(agent, tag)
        own = [key for key in KEYS if getattr(its, key) and getattr(its, key) == getattr(agent, key)]
        if own:
            why = "as its file gives them" if language_of(tag).texts else f"since voicepipe has no texts in {tag!r}"
            yield f"Agent {agent.name} says {', '.join(own)} in {agent.language!r} also to callers in {tag!r}, {why}"
