"""What the replies of one call are made with, and what one of them is asked to be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from voicepipe.agent import CallSettings, Origin, Tool
from voicepipe.config import LadderConfig
from voicepipe.engines.base import Engines
from voicepipe.playout import Playout
from voicepipe.speech import Speaker
from voicepipe.turn.events import CallEvent, Item
from voicepipe.turn.history import History, Ids
from voicepipe.turn.prompt import Prompt, ToolCall
from voicepipe.turn.transfer import TRANSFER_TOOL


class RunTool(Protocol):
    async def __call__(self, tool: Tool, call: ToolCall, about: Mapping[str, Any]) -> str: ...


@dataclass(slots=True)
class Studio:
    """What every reply of one call is made with."""

    call_id: str
    engines: Engines
    speaker: Speaker
    playout: Playout
    history: History
    run_tool: RunTool
    ladder: LadderConfig
    clock: Callable[[], float]
    emit: Callable[[CallEvent], None]
    ids: Ids = field(init=False)

    def __post_init__(self) -> None:
        self.ids = Ids(self.call_id.removeprefix("rtc_"))

    def transfers(self, settings: CallSettings) -> bool:
        """The model is offered our tool for that: the line can, the agent knows where to, and neither the client nor
        the agent has a tool of its name."""
        taken = {spec.name for spec in settings.tools} | {tool.name for tool in settings.agent.tools}
        return self.playout.line.transfers and bool(settings.agent.transfer) and TRANSFER_TOOL not in taken

    def about(self, origin: Origin) -> dict[str, Any]:
        """What tools are told of the phone call: {"id", "caller", "called", "headers"}."""
        return {"id": self.call_id, **msgspec.structs.asdict(origin)}

    def called(self, call: ToolCall) -> Item:
        """The model's call of a tool, as an item."""
        return Item(
            self.ids.new("item"), "function_call", "assistant",
            call_id=call.call_id, name=call.name, arguments=call.arguments,
        )  # fmt: skip

    def used(self, call: ToolCall, result: str) -> None:
        """A tool ran on the server: the conversation holds it, and the client does not see it."""
        output = Item(self.ids.new("item"), "function_call_output", call_id=call.call_id, output=result)
        for item in (self.called(call), output):
            self.history.add(item)
            self.history.hide(item.id)


@dataclass(slots=True)
class Order:
    """What a reply is asked to be."""

    prompt: Prompt
    settings: CallSettings
    text: str = ""
    """Say exactly this, without the model: the greeting, a question after silence."""
    metadata: dict[str, Any] | None = None
    remembered: bool = True
    """False: out of band, the conversation does not get its items."""
