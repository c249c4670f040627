"""Errors in what an agent's file says of languages. As `agent_problems`."""

from collections.abc import Iterator

from voicepipe.agent import Agent
from voicepipe.languages.tags import english_name, named_in, primary


def of_languages(agent: Agent) -> Iterator[str]:
    """Problems of `languages` and `voices`."""
    for index, tag in enumerate(agent.languages):
        if len(primary(tag)) == 2 and not english_name(
            tag
        ):  # The names of rarer ones, of three letters, are not known.
            yield f'languages[{index}]: {tag!r} is no language; give tags such as "en", "fr" or "pt-BR" (BCP 47)'
        if (before := named_in(agent.languages[:index], tag)) and primary(before) == primary(tag):
            yield f"languages: {before} and {tag} are one language; keep one of the two"
    if agent.languages and agent.language not in agent.languages:
        listed = ", ".join(agent.languages)
        yield f"languages: {agent.language}, in which it begins (language), is not among {listed}; add it"
    for tag in agent.voices:
        if tag not in agent.languages:
            yield f"voices.{tag}: is none of its languages; add {tag} to languages, or leave the voice out"
