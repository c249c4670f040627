"""The events that a call emits, and the items of its conversation. Events are frozen; the items in them go on changing.

An ingress translates these to its own wire; sideband listeners and `observe/` read the same stream. Identifiers are
made by the call: `item_...`, `resp_...`, `turn_...`.
"""

from dataclasses import dataclass
from typing import Literal

import msgspec

from voicepipe.call_settings import CallSettings
from voicepipe.conversation.timing import TurnSummary

Role = Literal["system", "user", "assistant"]
ItemKind = Literal["message", "function_call", "function_call_output"]
ReplyStatus = Literal["completed", "cancelled", "incomplete", "failed"]


@dataclass(slots=True)
class Item:
    """One entry of the conversation: a message, a tool call or its result. `History` and the reply that speaks it
    change it; everyone else reads."""

    id: str
    kind: ItemKind = "message"
    role: Role = "user"
    text: str = ""
    """What was said. For an assistant whose audio was cut: only what the caller heard."""
    audio_ms: int | None = None
    """Milliseconds of audio behind the text; None: the item was text."""
    status: Literal["in_progress", "completed", "incomplete"] = "completed"
    call_id: str = ""
    """function_call and function_call_output: joins the two."""
    name: str = ""
    arguments: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """An event: the caller speaks. While a reply is audible it waits for the decision to cut it, back-dated by
    `at_ms`."""

    item_id: str
    at_ms: int
    """Milliseconds of input before the first voiced sample, less the prefix padding."""


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """An event: the turn is over, and the caller's voice ended at `at_ms` milliseconds of input."""

    item_id: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class WordsHeard:
    """An event: more of the caller's words that will not be revised; for transcripts that grow."""

    item_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class KeyPressed:
    """An event: the caller pressed a key of their telephone (DTMF)."""

    key: str
    """"0" to "9", "*", "#", "A" to "D"."""
    at: int
    """Unix seconds."""


@dataclass(frozen=True, slots=True)
class ItemAdded:
    """An event: a complete item joined the conversation, the caller's turn or one that the client made.

    `spoken`: it is the caller's committed turn (the wire's `committed` and transcription events belong to it).
    """

    item: Item
    previous_id: str | None
    spoken: bool = False
    languages: tuple[str, ...] | None = None
    """In which it was spoken, by their tags; empty: the recogniser is not sure enough; None: it does not tell."""


@dataclass(frozen=True, slots=True)
class ItemTruncated:
    """An event: the assistant's item was cut at what the caller heard."""

    item_id: str
    audio_end_ms: int


@dataclass(frozen=True, slots=True)
class ItemDeleted:
    """An event: an item was deleted from the conversation."""

    item_id: str


@dataclass(frozen=True, slots=True)
class ReplyStarted:
    """An event: a response is certain. Nothing of a speculation is emitted before this."""

    response_id: str
    turn_id: str
    modality: Literal["audio", "text"] = "audio"
    metadata: dict[str, str] | None = None
    """As the client gave it in `response.create`."""
    remembered: bool = True
    """False: made beside the conversation, which does not get its items."""
    record: TurnSummary = TurnSummary()
    """The turn so far, with what was prepared in the silence."""


@dataclass(frozen=True, slots=True)
class ReplyItemAdded:
    """An event: the response begins an item, a message or a tool call. Audio sent on the line from here on belongs to
    it."""

    response_id: str
    item: Item
    previous_id: str | None


@dataclass(frozen=True, slots=True)
class ReplyText:
    """An event: more text of the response's current message, as a transcript beside audio or as the text itself."""

    response_id: str
    item_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class ReplyItemDone:
    """An event: the response's current item is complete, or will get no longer (status incomplete)."""

    response_id: str
    item: Item


TOOL_CHARS, TOOL_NAME_CHARS = 500, 64
"""Characters that `ToolUse` holds of arguments and result; and of the name, which a model may have made up."""


class ToolUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool of the agent's that a reply had run on the server. Clients read it in the response's metadata."""

    name: str
    took: float | None = None
    """Milliseconds; None: it ran on when the reply was over."""
    at: float | None = None
    """Milliseconds after the caller's last voiced sample; None: there is none."""
    failed: bool = False
    arguments: str = ""
    """JSON, by the model."""
    result: str = ""
    """As the model reads it."""
    early: bool = False
    """It only reads, and was begun before the turn was confirmed."""


@dataclass(frozen=True, slots=True)
class ReplyDone:
    """An event: the response is over. Everything has been handed to the line, or it was cancelled."""

    response_id: str
    status: ReplyStatus
    reason: str = ""
    """cancelled: "turn_detected" or "client_cancelled"; incomplete: "max_output_tokens"; failed: the error in words."""
    items: tuple[Item, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    record: TurnSummary = TurnSummary()
    """The turn so far."""
    tools: tuple[ToolUse, ...] = ()
    """Tools that the reply had run, in the order in which they were begun."""


@dataclass(frozen=True, slots=True)
class AgentChanged:
    """An event: another agent has taken the call over. What was said until then is the former's."""

    settings: CallSettings
    """The call's settings from now on."""


@dataclass(frozen=True, slots=True)
class LanguageChanged:
    """An event: the call goes on in another language, by what the caller has said or as the model wants it, and maybe
    with another voice."""

    language: str
    """BCP 47."""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """An event, the last of a call.

    `reason`: "caller", "agent", "no_input", "transferred", "max_length", "idle", "shutdown", "error", "closed" (the
    server has closed the caller's connection).
    """

    reason: str
    detail: str = ""
    """transferred: to whom; error: in words."""


CallEvent = (
    SpeechStarted
    | SpeechStopped
    | WordsHeard
    | KeyPressed
    | ItemAdded
    | ItemTruncated
    | ItemDeleted
    | ReplyStarted
    | ReplyItemAdded
    | ReplyText
    | ReplyItemDone
    | ReplyDone
    | AgentChanged
    | LanguageChanged
    | CallEnded
)
