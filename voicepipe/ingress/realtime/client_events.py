"""The events that a client sends, with the names and fields of openai-python's `types.realtime` (GA).

Decoded strictly by the tag `type`; fields we do not know are ignored.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from voicepipe.base import foreign_json
from voicepipe.ingress.realtime.items import ItemIn
from voicepipe.ingress.realtime.session import MaxTokens, ToolChoice, ToolJson
from voicepipe.ingress.wire_errors import LONGEST, WireError, wire_error

Id = Annotated[str, Meta(min_length=1, max_length=512)]
Ms = Annotated[int, Meta(ge=0, le=86_400_000)]
Key = Annotated[str, Meta(max_length=64)]
CHUNK = 64_000
"""Characters of base64 that are decoded at a time, a multiple of four: a second of sound at 24 kHz."""
Metadata = Annotated[dict[Key, Annotated[str, Meta(max_length=512)]], Meta(max_length=16)]


class ClientEvent(Struct, tag_field="type", kw_only=True):
    """Base of the events that a client sends."""

    event_id: str | None = None
    """The client's own; comes back in `error.event_id` alone."""


class SessionUpdate(ClientEvent, tag="session.update"):
    """`session.update`: change parts of the session."""

    session: dict[str, Any]


class InputAppend(ClientEvent, tag="input_audio_buffer.append"):
    """`input_audio_buffer.append`: some of the caller's sound."""

    audio: str
    """In base64, in the session's input format."""

    def chunks(self) -> Iterator[bytes]:
        """The decoded sound, chunk by chunk: it may be minutes long, and decoding all of it would hold up the loop for
        milliseconds. Raises WireError where it is no base64, perhaps after chunks that are."""
        for start in range(0, len(self.audio), CHUNK):
            try:
                yield msgspec.convert(self.audio[start : start + CHUNK], bytes)
            except msgspec.ValidationError as error:
                raise wire_error(error, "audio") from None


class InputCommit(ClientEvent, tag="input_audio_buffer.commit"):
    """`input_audio_buffer.commit`: end the caller's turn."""


class InputClear(ClientEvent, tag="input_audio_buffer.clear"):
    """`input_audio_buffer.clear`: drop the caller's sound."""


class OutputClear(ClientEvent, tag="output_audio_buffer.clear"):
    """`output_audio_buffer.clear`: drop the sound that was not sent yet."""


class ItemCreate(ClientEvent, tag="conversation.item.create"):
    """`conversation.item.create`: add an item to the conversation."""

    item: ItemIn
    previous_item_id: Id | None = None


class ItemRetrieve(ClientEvent, tag="conversation.item.retrieve"):
    """`conversation.item.retrieve`: ask for an item."""

    item_id: Id


class ItemTruncate(ClientEvent, tag="conversation.item.truncate"):
    """`conversation.item.truncate`: cut an item at what the caller has heard."""

    item_id: Id
    audio_end_ms: Ms
    content_index: Literal[0] = 0


class ItemDelete(ClientEvent, tag="conversation.item.delete"):
    """`conversation.item.delete`: remove an item."""

    item_id: Id


class ResponseVoice(Struct, frozen=True):
    """The voice of one response."""

    voice: str | dict[str, Any] | None = None


class ResponseAudio(Struct, frozen=True):
    """The sound of one response."""

    output: ResponseVoice | None = None


class ResponseParams(Struct, frozen=True, kw_only=True):
    """The parameters of one response. None: as the session says."""

    instructions: str | None = None
    tools: list[ToolJson] | None = None
    tool_choice: ToolChoice | None = None
    output_modalities: Annotated[list[Literal["audio", "text"]], Meta(min_length=1)] | None = None
    max_output_tokens: MaxTokens | None = None
    audio: ResponseAudio | None = None
    metadata: Metadata | None = None
    conversation: Literal["auto", "none"] | None = None
    input: list[ItemIn] | None = None


class ResponseCreate(ClientEvent, tag="response.create"):
    """`response.create`: have a reply made."""

    response: ResponseParams | None = None


class ResponseCancel(ClientEvent, tag="response.cancel"):
    """`response.cancel`: stop the reply in progress."""

    response_id: Id | None = None


AnyClientEvent = (
    SessionUpdate
    | InputAppend
    | InputCommit
    | InputClear
    | OutputClear
    | ItemCreate
    | ItemRetrieve
    | ItemTruncate
    | ItemDelete
    | ResponseCreate
    | ResponseCancel
)


class _Envelope(Struct, frozen=True):
    event_id: msgspec.Raw = msgspec.Raw(b"null")
    """Raw: skipped, and not decoded."""


_SOUND = re.compile(r'"audio"\s*:\s*"')


def decode(raw: str | bytes, most: int) -> AnyClientEvent:
    """The event in one message. Raises WireError, also where it is longer than `most` without its sound."""
    event: AnyClientEvent | None
    if len(raw) <= most:
        event = _read(raw, AnyClientEvent)
        return event
    said, sound = _apart(raw, most)
    event = _read(said, AnyClientEvent) if said else None
    if not isinstance(event, InputAppend) or event.audio:
        too_long = f"The message is {len(raw)} bytes long, and at most {most} are taken unless it appends audio. "
        raise WireError("invalid_value", f"{too_long}Send less at once.")
    # Some encoders escape what base64 has: .NET its "+", PHP its "/".
    event.audio = _read(f'"{sound}"', str) if "\\" in sound else sound
    return event


def _apart(raw: str | bytes, most: int) -> tuple[str, str]:
    """A long message without its sound, and the sound. "": without its sound it is still longer than `most`.

    A parser that only skips 16 MiB of `{}` still stops the loop for a fifth of a second. So nothing of a long message
    is parsed except what surrounds its base64, in which no quote can be."""
    text = raw if isinstance(raw, str) else raw.decode(errors="replace")
    found = _SOUND.search(text, 0, most)
    end = text.find('"', found.end()) if found else -1
    if not found or end < 0 or len(text) - (end - found.end()) > most:
        return "", ""
    return text[: found.end()] + text[end:], text[found.end() : end]


def _read(raw: str | bytes, shape: Any) -> Any:
    """Decode one event. Raises WireError."""
    try:
        return foreign_json.decode(raw, shape)
    except msgspec.DecodeError as error:
        raise wire_error(error) from None


def event_id(raw: str | bytes, most: int) -> str | None:
    """The `event_id` of a message that could not be decoded, where it has one."""
    said = raw if len(raw) <= most else _apart(raw, most)[0]
    try:
        found = foreign_json.decode(said, _Envelope).event_id
        return foreign_json.decode(found, str) if len(bytes(found)) <= LONGEST else None
    except msgspec.DecodeError:
        return None
