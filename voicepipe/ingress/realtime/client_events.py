"""What a client may say, names and fields as openai-python's `types.realtime` has them (GA).

Decoded strictly by the tag `type`; fields we do not know are ignored.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from voicepipe.ingress.realtime.errors import LONGEST, WireError, wire_error
from voicepipe.ingress.realtime.items import ItemIn
from voicepipe.ingress.realtime.session import MaxTokens, ToolChoice, ToolJson

Id = Annotated[str, Meta(min_length=1, max_length=512)]
Ms = Annotated[int, Meta(ge=0, le=86_400_000)]
Key = Annotated[str, Meta(max_length=64)]
PIECE = 64_000
"""Characters of base64, a multiple of four: a second of sound at 24 kHz."""
Metadata = Annotated[dict[Key, Annotated[str, Meta(max_length=512)]], Meta(max_length=16)]


class ClientEvent(Struct, tag_field="type", kw_only=True):
    event_id: str | None = None
    """The client's own; comes back in `error.event_id` alone."""


class SessionUpdate(ClientEvent, tag="session.update"):
    session: dict[str, Any]


class InputAppend(ClientEvent, tag="input_audio_buffer.append"):
    audio: str
    """In base64, in the session's input format."""

    def pieces(self) -> Iterator[bytes]:
        """It may be minutes of sound, which take the loop's time for milliseconds: so it is decoded as it is taken.
        Raises WireError where it is no base64, perhaps after pieces that are."""
        for start in range(0, len(self.audio), PIECE):
            try:
                yield msgspec.convert(self.audio[start : start + PIECE], bytes)
            except msgspec.ValidationError as error:
                raise wire_error(error, "audio") from None


class InputCommit(ClientEvent, tag="input_audio_buffer.commit"):
    pass


class InputClear(ClientEvent, tag="input_audio_buffer.clear"):
    pass


class OutputClear(ClientEvent, tag="output_audio_buffer.clear"):
    pass


class ItemCreate(ClientEvent, tag="conversation.item.create"):
    item: ItemIn
    previous_item_id: Id | None = None


class ItemRetrieve(ClientEvent, tag="conversation.item.retrieve"):
    item_id: Id


class ItemTruncate(ClientEvent, tag="conversation.item.truncate"):
    item_id: Id
    audio_end_ms: Ms
    content_index: Literal[0] = 0


class ItemDelete(ClientEvent, tag="conversation.item.delete"):
    item_id: Id


class ResponseVoice(Struct, frozen=True):
    voice: str | dict[str, Any] | None = None


class ResponseAudio(Struct, frozen=True):
    output: ResponseVoice | None = None


class ResponseParams(Struct, frozen=True, kw_only=True):
    """None: as the session says."""

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
    response: ResponseParams | None = None


class ResponseCancel(ClientEvent, tag="response.cancel"):
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

_decoder: msgspec.json.Decoder[AnyClientEvent] = msgspec.json.Decoder(AnyClientEvent)
_append_decoder = msgspec.json.Decoder(InputAppend)


class _Envelope(Struct, frozen=True):
    """Raw: skipped and not made. Whoever has masses made stops the loop for seconds, as 16 MiB of `{}` do."""

    event_id: msgspec.Raw = msgspec.Raw(b"null")
    type: msgspec.Raw = msgspec.Raw(b"null")


_envelope = msgspec.json.Decoder(_Envelope)


def decode(raw: str | bytes, most: int) -> AnyClientEvent:
    """The event in one message. Raises WireError, also where it is longer than `most` and no audio."""
    try:
        # Not by the decoder of all events: with two types in it, the message would be the first one's.
        return _decoder.decode(raw) if len(raw) <= most else _append_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        if len(raw) > most and _short(raw, "type") != "input_audio_buffer.append":
            too_long = f"The message is {len(raw)} bytes long, and at most {most} are taken unless it appends audio. "
            raise WireError("invalid_value", f"{too_long}Send less at once.") from None
        raise wire_error(error) from None


def event_id(raw: str | bytes) -> str | None:
    """The `event_id` of a message that could not be decoded, where it has one."""
    return _short(raw, "event_id")


def _short(raw: str | bytes, field: str) -> str | None:
    """A text of the envelope; None: there is none, or a very long one."""
    try:
        found = getattr(_envelope.decode(raw), field)
        return msgspec.json.decode(found, type=str) if len(bytes(found)) <= LONGEST else None
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
