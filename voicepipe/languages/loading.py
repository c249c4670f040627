"""Loads what is known of languages from its files, before the first call needs it."""

from collections.abc import Iterable

from voicepipe.agent import Agent
from voicepipe.languages.known import language_of
from voicepipe.languages.written_language import warm


def load_languages(agents: Iterable[Agent]) -> None:
    """Load what these agents need. Blocks, the first time for 0.3 s a language, and 0.6 s more where an agent has
    several; afterwards it takes no time."""
    agents = list(agents)
    for tag in {tag for agent in agents for tag in agent.spoken}:
        language_of(tag).turn.warm()
    if any(len(agent.languages) > 1 for agent in agents):
        warm()
