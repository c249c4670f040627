"""The tool by which a model has its caller put through to a person."""

import msgspec

from voicepipe.agent import Agent, ToolSpec
from voicepipe.errors import TransferFailed

TRANSFER_TOOL = "transfer_call"


class _Arguments(msgspec.Struct):
    to: str


def transfer_tool(agent: Agent) -> ToolSpec:
    """What is offered to the model: the names of the agent's table."""
    names = list(agent.transfer)
    return ToolSpec(
        TRANSFER_TOOL,
        f"Put the caller through to a person: {', '.join(names)}. Tell the caller first that you will.",
        {"type": "object", "required": ["to"], "properties": {"to": {"type": "string", "enum": names}}},
    )


def target(agent: Agent, arguments: str) -> str:
    """Where the model wants the caller to go. Raises TransferFailed, which tells it what it may say instead."""
    try:
        to = msgspec.json.decode(arguments, type=_Arguments).to
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        to = ""
    if to not in agent.transfer:
        raise TransferFailed(f"`to` must be one of: {', '.join(agent.transfer)}")
    return agent.transfer[to]
