"""Conversation items on the wire, both ways. Pure."""

import secrets
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from voicepipe.conversation.events import Item, Role
from voicepipe.ingress.wire_errors import WireError

ItemId = Annotated[str, Meta(min_length=1, max_length=128)]
Status = Literal["in_progress", "completed", "incomplete"]


# --- from the client --------------------------------------------------------------------------------------------


class PartIn(Struct, frozen=True):
    """A content part of a client's message. Audio counts by its transcript: audio that was never streamed is not
    recognised."""

    type: Literal["input_text", "output_text", "text", "input_audio", "output_audio", "audio"]
    text: str | None = None
    transcript: str | None = None


class _ItemIn(Struct, kw_only=True, tag_field="type"):
    """Base of the items that a client sends."""

    id: ItemId | None = None


class MessageIn(_ItemIn, tag="message"):
    """A client's message item."""

    role: Role
    content: list[PartIn]


class FunctionCallIn(_ItemIn, tag="function_call"):
    """A client's tool call item."""

    name: str
    arguments: str
    call_id: ItemId | None = None


class FunctionOutputIn(_ItemIn, tag="function_call_output"):
    """A client's tool result item."""

    call_id: ItemId
    output: str


class ReferenceIn(_ItemIn, tag="item_reference"):
    """A reference to an item that is in the conversation already; in `response.create` only."""


ItemIn = MessageIn | FunctionCallIn | FunctionOutputIn | ReferenceIn


def fresh_id(prefix: str) -> str:
    """A new identifier: "item_3f9c..."."""
    return f"{prefix}_{secrets.token_hex(10)}"


def item_of(wire: ItemIn, param: str = "item") -> Item:
    """The conversation item that a client describes. Raises WireError for what cannot be understood. `param` is the
    path of `wire` in its message."""
    item_id = wire.id or fresh_id("item")
    match wire:
        case MessageIn():
            texts = (_text(part, f"{param}.content[{n}]") for n, part in enumerate(wire.content))
            return Item(item_id, role=wire.role, text="\n".join(texts))
        case FunctionCallIn():
            return Item(item_id, "function_call", "assistant", name=wire.name, arguments=wire.arguments,
                        call_id=wire.call_id or fresh_id("call"))  # fmt: skip
        case FunctionOutputIn():
            return Item(item_id, "function_call_output", "user", call_id=wire.call_id, output=wire.output)
        case ReferenceIn():
            raise WireError("invalid_value", "An item_reference is good in response.input alone.", f"{param}.type")


def _text(part: PartIn, param: str) -> str:
    audio = part.type.endswith("audio")
    text = part.transcript if audio else part.text
    if text is not None:
        return text
    if audio:
        raise WireError("invalid_value", "Audio in an item needs its transcript; to be recognised it must be streamed "
                        "by input_audio_buffer.append.", f"{param}.transcript")  # fmt: skip
    raise WireError("missing_required_parameter", f"Missing required parameter: '{param}.text'.", f"{param}.text")


# --- to the client ----------------------------------------------------------------------------------------------


class ContentPart(Struct, omit_defaults=True):
    """The one content part of a message. `type` is input_*/output_* inside items, and bare "text"/"audio" inside
    `response.content_part.*`."""

    type: str
    text: str | UnsetType = UNSET
    transcript: str | None | UnsetType = UNSET


class _ItemOut(Struct, kw_only=True, tag_field="type"):
    """Base of the items that we send."""

    id: str
    status: Status
    object: Literal["realtime.item"] = "realtime.item"


class MessageOut(_ItemOut, tag="message"):
    """A message item as we send it."""

    role: Role
    content: list[ContentPart]


class FunctionCallOut(_ItemOut, tag="function_call"):
    """A tool call item as we send it."""

    name: str
    call_id: str
    arguments: str


class FunctionOutputOut(_ItemOut, tag="function_call_output"):
    """A tool result item as we send it."""

    call_id: str
    output: str


AnyItem = MessageOut | FunctionCallOut | FunctionOutputOut


def content_part(item: Item, *, side: str = "", audio: bool | None = None) -> ContentPart:
    """The one content part of a message. `side` is "input_" or "output_" inside an item. `audio`: whether it is speech,
    where the response knows better than the item (none of it was heard)."""
    if item.audio_ms is not None if audio is None else audio:
        return ContentPart(f"{side}audio", transcript=item.text)
    return ContentPart(f"{side}text", text=item.text)


def wire_item(item: Item, *, audio: bool | None = None) -> AnyItem:
    """A snapshot of `item`, which goes on changing. `audio` as in `content_part`."""
    if item.kind == "function_call":
        return FunctionCallOut(id=item.id, status=item.status, name=item.name, call_id=item.call_id,
                               arguments=item.arguments)  # fmt: skip
    if item.kind == "function_call_output":
        return FunctionOutputOut(id=item.id, status=item.status, call_id=item.call_id, output=item.output)
    side = "output_" if item.role == "assistant" else "input_"
    content = [] if item.status == "in_progress" else [content_part(item, side=side, audio=audio)]
    return MessageOut(id=item.id, status=item.status, role=item.role, content=content)
