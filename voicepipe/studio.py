"""What the replies of one call are made with, and what one of them is asked to be."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from voicepipe.agent import CallSettings, Origin
from voicepipe.config import LadderConfig
from voicepipe.engines.base import Engines
from voicepipe.errands import BeginTool, Errands, called
from voicepipe.playout import Playout
from voicepipe.speech import Speaker
from voicepipe.turn.end_call import END_CALL
from voicepipe.turn.events import CallEvent, Item
from voicepipe.turn.history import History, Ids
from voicepipe.turn.prompt import Prompt, ToolCall
from voicepipe.turn.transfer import TRANSFER_TOOL


@dataclass(slots=True)
class Studio:
    """What every reply of one call is made with."""

    call_id: str
    engines: Engines
    speaker: Speaker
    playout: Playout
    history: History
    begin_tool: BeginTool
    ladder: LadderConfig
    clock: Callable[[], float]
    emit: Callable[[CallEvent], None]
    ids: Ids = field(init=False)
    errands: Errands = field(init=False)

    def __post_init__(self) -> None:
        self.ids = Ids(self.call_id.removeprefix("rtc_"))
        self.errands = Errands(self.history, self.ids, self.begin_tool)

    def transfers(self, settings: CallSettings) -> bool:
        """The model is offered our tool for that: the line can, the agent knows where to, and neither the client nor
        the agent has a tool of its name."""
        return self.playout.line.transfers and bool(settings.agent.transfer) and TRANSFER_TOOL not in _taken(settings)

    def ends(self, settings: CallSettings) -> bool:
        """The model is offered our tool for hanging up, likewise."""
        return settings.agent.end_call and END_CALL not in _taken(settings)

    def about(self, origin: Origin) -> dict[str, Any]:
        """What tools are told of the phone call: {"id", "caller", "called", "headers"}."""
        return {"id": self.call_id, **msgspec.structs.asdict(origin)}

    def used(self, call: ToolCall, result: str) -> None:
        """A tool ran on the server: the conversation holds it, and the client does not see it."""
        output = Item(self.ids.new("item"), "function_call_output", call_id=call.call_id, output=result)
        for item in (called(self.ids, call), output):
            self.history.add(item)
            self.history.hide(item.id)


def _taken(settings: CallSettings) -> set[str]:
    """Names of the client's tools and the agent's."""
    return {spec.name for spec in settings.tools} | {tool.name for tool in settings.agent.tools}


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
