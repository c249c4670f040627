"""An agent's own texts in another language of its callers."""

from msgspec.structs import replace

from voicepipe.agent import Agent
from voicepipe.languages.known import language_of
from voicepipe.languages.language import AgentTexts


def in_language(agent: Agent, tag: str) -> Agent:
    """The agent with `language` = `tag` (BCP 47). A text that is the default of its old language becomes the default of
    the new one; any other stays as it is. The same object where it speaks that language already."""
    if tag == agent.language:
        return agent
    own, other = _texts(agent.language), _texts(tag)
    texts = {key: getattr(other, key) for key in AgentTexts.__struct_fields__}
    ours = {key: text for key, text in texts.items() if getattr(agent, key) == getattr(own, key) != text}
    return replace(agent, language=tag, **ours)


def _texts(tag: str) -> AgentTexts:
    texts = language_of(tag).texts or language_of("en").texts
    assert texts
    return texts
