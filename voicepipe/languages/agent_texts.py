"""An agent's own texts in another language of its callers."""

from msgspec.structs import replace

from voicepipe.agent import Agent
from voicepipe.languages.known import language_of
from voicepipe.languages.language import AgentTexts


def in_language(agent: Agent, tag: str) -> Agent:
    """`agent` with the texts of the language `tag` (BCP 47) where it has those that its own language has by default.
    The same object where none is different."""
    own, other = _texts(agent.language), _texts(tag)
    texts = {key: getattr(other, key) for key in AgentTexts.__struct_fields__}
    ours = {key: text for key, text in texts.items() if getattr(agent, key) == getattr(own, key) != text}
    return replace(agent, **ours) if ours else agent


def spoken_in(agent: Agent, tag: str) -> Agent:
    """`agent` as it speaks with a caller in the language `tag` (BCP 47). The same object where that is its own."""
    return agent if tag == agent.language else replace(in_language(agent, tag), language=tag)


def _texts(tag: str) -> AgentTexts:
    texts = language_of(tag).texts or language_of("en").texts
    assert texts
    return texts
