"""One request to a language model, in the words that all of them share."""

from dataclasses import dataclass
from typing import Literal

from voicepipe.agent import Agent, ToolSpec


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model asks for a tool. `arguments` is JSON text as the model wrote it, perhaps malformed."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the prompt."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    call: ToolCall | None = None
    """role assistant: the tool that it called."""
    call_id: str = ""
    """role tool: which call this is the result of."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to the model."""

    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    """"auto", "none", "required", or the name of the tool that must be called."""
    max_tokens: int | None = None
    speculative: bool = False
    """Not confirmed yet: scheduled behind confirmed turns."""
    agent: Agent | None = None
    """Engines that are configured by the agent's file (frontdesk) look here."""
