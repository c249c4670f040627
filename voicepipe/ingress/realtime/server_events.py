"""The events that we send, with the names and fields of openai-python's `types.realtime` (GA).

`event_id` is left empty here: whoever sends an event numbers it.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from voicepipe.ingress.realtime.items import AnyItem, ContentPart
from voicepipe.ingress.realtime.session import Format, MaxTokens, Session
from voicepipe.ingress.wire_errors import LONGEST, WireError


class ServerEvent(Struct, tag_field="type", kw_only=True):
    """Base of the events that we send."""

    event_id: str = ""


class ErrorBody(Struct, kw_only=True):
    """The error of an `error` event."""

    type: str
    code: str
    message: str
    param: str | None = None
    event_id: str | None = None


class ErrorEvent(ServerEvent, tag="error"):
    """`error`: a client's event could not be carried out."""

    error: ErrorBody

    @classmethod
    def of(cls, error: WireError, event_id: str | None = None) -> "ErrorEvent":
        """The event for an error. `event_id` is the id of the client's event; an absurdly long one is not repeated."""
        echoed = event_id if event_id and len(event_id) <= LONGEST else None
        return cls(error=ErrorBody(type=error.kind, code=error.code, message=error.message, param=error.param,
                                   event_id=echoed))  # fmt: skip


class SessionCreated(ServerEvent, tag="session.created"):
    """`session.created`: the session at the beginning."""

    session: Session


class SessionUpdated(ServerEvent, tag="session.updated"):
    """`session.updated`: the session after a change."""

    session: Session


class SpeechStartedEvent(ServerEvent, tag="input_audio_buffer.speech_started"):
    """`input_audio_buffer.speech_started`: the caller begins to speak. `audio_start_ms` counts from the call's
    beginning."""

    audio_start_ms: int
    item_id: str


class SpeechStoppedEvent(ServerEvent, tag="input_audio_buffer.speech_stopped"):
    """`input_audio_buffer.speech_stopped`: the caller's turn has ended."""

    audio_end_ms: int
    item_id: str


class InputCommitted(ServerEvent, tag="input_audio_buffer.committed"):
    """`input_audio_buffer.committed`: the caller's turn is an item."""

    item_id: str
    previous_item_id: str | None


class InputCleared(ServerEvent, tag="input_audio_buffer.cleared"):
    """`input_audio_buffer.cleared`: the caller's sound was dropped."""


class DtmfReceived(ServerEvent, tag="input_audio_buffer.dtmf_event_received"):
    """`input_audio_buffer.dtmf_event_received`: the caller pressed a key."""

    event: str
    """The key."""
    received_at: int
    """Unix seconds."""


class OutputStarted(ServerEvent, tag="output_audio_buffer.started"):
    """`output_audio_buffer.started`: the caller begins to hear a reply."""

    response_id: str


class OutputStopped(ServerEvent, tag="output_audio_buffer.stopped"):
    """`output_audio_buffer.stopped`: the reply was heard to its end."""

    response_id: str


class OutputCleared(ServerEvent, tag="output_audio_buffer.cleared"):
    """`output_audio_buffer.cleared`: the rest of the reply was dropped."""

    response_id: str


class ItemAddedEvent(ServerEvent, tag="conversation.item.added"):
    """`conversation.item.added`: the conversation has a new item."""

    item: AnyItem
    previous_item_id: str | None


class ItemDoneEvent(ServerEvent, tag="conversation.item.done"):
    """`conversation.item.done`: an item is complete."""

    item: AnyItem
    previous_item_id: str | None


class ItemRetrieved(ServerEvent, tag="conversation.item.retrieved"):
    """`conversation.item.retrieved`: the item that a client asked for."""

    item: AnyItem


class ItemTruncatedEvent(ServerEvent, tag="conversation.item.truncated"):
    """`conversation.item.truncated`: an item was cut at what the caller has heard."""

    item_id: str
    audio_end_ms: int
    content_index: int = 0


class ItemDeletedEvent(ServerEvent, tag="conversation.item.deleted"):
    """`conversation.item.deleted`: an item was removed."""

    item_id: str


class CallerTranscriptDelta(ServerEvent, tag="conversation.item.input_audio_transcription.delta"):
    """`conversation.item.input_audio_transcription.delta`: some of the caller's words."""

    item_id: str
    delta: str
    content_index: int = 0


class Duration(Struct, kw_only=True):
    """The length of the caller's sound."""

    seconds: float
    type: Literal["duration"] = "duration"


class DetectedLanguage(Struct, kw_only=True):
    """A language in which the caller has spoken."""

    code: str
    """BCP 47, as the agent names it."""


class CallerTranscriptCompleted(ServerEvent, tag="conversation.item.input_audio_transcription.completed"):
    """`conversation.item.input_audio_transcription.completed`: all words of the caller's turn."""

    item_id: str
    transcript: str
    usage: Duration
    languages: list[DetectedLanguage] | UnsetType = UNSET
    """Empty: the recogniser is not sure enough. Not there: it does not tell."""
    content_index: int = 0


class StatusError(Struct, kw_only=True):
    """The error in a failed response's status."""

    type: str
    code: str
    message: str


class StatusDetails(Struct, kw_only=True, omit_defaults=True):
    """Why a response is not complete."""

    type: str
    reason: str | None = None
    error: StatusError | None = None


class InputTokens(Struct, kw_only=True):
    """Input tokens by kind."""

    text_tokens: int
    audio_tokens: int = 0
    image_tokens: int = 0
    cached_tokens: int = 0


class OutputTokens(Struct, kw_only=True):
    """Output tokens by kind."""

    text_tokens: int
    audio_tokens: int = 0


class Usage(Struct, kw_only=True):
    """Tokens that a response took."""

    total_tokens: int
    input_tokens: int
    output_tokens: int
    input_token_details: InputTokens
    output_token_details: OutputTokens


class ResponseSound(Struct, kw_only=True):
    """The sound of a response."""

    format: Format
    voice: str


class ResponseAudioSettings(Struct, kw_only=True):
    """The format and the voice of a response's sound."""

    output: ResponseSound


class RealtimeResponse(Struct, kw_only=True):
    """A response as it is shown in events."""

    id: str
    status: str
    output: list[AnyItem]
    conversation_id: str | None
    output_modalities: list[str]
    max_output_tokens: MaxTokens
    audio: ResponseAudioSettings
    metadata: dict[str, str] | None
    status_details: StatusDetails | None = None
    usage: Usage | None = None
    object: Literal["realtime.response"] = "realtime.response"


class ResponseCreated(ServerEvent, tag="response.created"):
    """`response.created`: a reply begins."""

    response: RealtimeResponse


class ResponseDone(ServerEvent, tag="response.done"):
    """`response.done`: a reply has ended."""

    response: RealtimeResponse


class OutputItemAdded(ServerEvent, tag="response.output_item.added"):
    """`response.output_item.added`: the reply has a new item."""

    response_id: str
    output_index: int
    item: AnyItem


class OutputItemDone(ServerEvent, tag="response.output_item.done"):
    """`response.output_item.done`: an item of the reply is complete."""

    response_id: str
    output_index: int
    item: AnyItem


class InItem(ServerEvent, kw_only=True):
    """Base of the events inside an output item."""

    response_id: str
    item_id: str
    output_index: int


class InContent(InItem, kw_only=True):
    """Base of the events inside the one content part of an output message."""

    content_index: int = 0


class ContentPartAdded(InContent, tag="response.content_part.added"):
    """`response.content_part.added`: a message's content begins."""

    part: ContentPart


class ContentPartDone(InContent, tag="response.content_part.done"):
    """`response.content_part.done`: a message's content is complete."""

    part: ContentPart


class TextDelta(InContent, tag="response.output_text.delta"):
    """`response.output_text.delta`: some text of a reply without sound."""

    delta: str


class TextDone(InContent, tag="response.output_text.done"):
    """`response.output_text.done`: all text of a reply without sound."""

    text: str


class AudioDelta(InContent, tag="response.output_audio.delta"):
    """`response.output_audio.delta`: some sound of the reply."""

    delta: bytes
    """Base64 on the wire, in the session's output format."""


class AudioDone(InContent, tag="response.output_audio.done"):
    """`response.output_audio.done`: the sound of the reply is complete."""


class ReplyTranscriptDelta(InContent, tag="response.output_audio_transcript.delta"):
    """`response.output_audio_transcript.delta`: some words of the reply's sound."""

    delta: str


class ReplyTranscriptDone(InContent, tag="response.output_audio_transcript.done"):
    """`response.output_audio_transcript.done`: all words of the reply's sound."""

    transcript: str


class ArgumentsDelta(InItem, tag="response.function_call_arguments.delta"):
    """`response.function_call_arguments.delta`: some of a tool call's arguments."""

    call_id: str
    delta: str


class ArgumentsDone(InItem, tag="response.function_call_arguments.done"):
    """`response.function_call_arguments.done`: all of a tool call's arguments."""

    call_id: str
    name: str
    arguments: str


encode = msgspec.json.Encoder().encode
"""Encode one server event as UTF-8 JSON."""
