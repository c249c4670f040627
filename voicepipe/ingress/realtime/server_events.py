"""What we say, names and fields as openai-python's `types.realtime` has them (GA).

`event_id` is left empty here: whoever sends an event numbers it.
"""

from typing import Literal

import msgspec
from msgspec import Struct

from voicepipe.ingress.realtime.items import AnyItem, ContentPart
from voicepipe.ingress.realtime.session import Format, MaxTokens, Session
from voicepipe.ingress.wire_errors import LONGEST, WireError


class ServerEvent(Struct, tag_field="type", kw_only=True):
    event_id: str = ""


class ErrorBody(Struct, kw_only=True):
    type: str
    code: str
    message: str
    param: str | None = None
    event_id: str | None = None


class ErrorEvent(ServerEvent, tag="error"):
    error: ErrorBody

    @classmethod
    def of(cls, error: WireError, event_id: str | None = None) -> "ErrorEvent":
        """`event_id` is the client's, of the event at fault; one that is absurdly long does not come back."""
        echoed = event_id if event_id and len(event_id) <= LONGEST else None
        return cls(error=ErrorBody(type=error.kind, code=error.code, message=error.message, param=error.param,
                                   event_id=echoed))  # fmt: skip


class SessionCreated(ServerEvent, tag="session.created"):
    session: Session


class SessionUpdated(ServerEvent, tag="session.updated"):
    session: Session


class SpeechStartedEvent(ServerEvent, tag="input_audio_buffer.speech_started"):
    audio_start_ms: int
    item_id: str


class SpeechStoppedEvent(ServerEvent, tag="input_audio_buffer.speech_stopped"):
    audio_end_ms: int
    item_id: str


class InputCommitted(ServerEvent, tag="input_audio_buffer.committed"):
    item_id: str
    previous_item_id: str | None


class InputCleared(ServerEvent, tag="input_audio_buffer.cleared"):
    pass


class DtmfReceived(ServerEvent, tag="input_audio_buffer.dtmf_event_received"):
    event: str
    """The key."""
    received_at: int
    """Unix seconds."""


class OutputStarted(ServerEvent, tag="output_audio_buffer.started"):
    response_id: str


class OutputStopped(ServerEvent, tag="output_audio_buffer.stopped"):
    response_id: str


class OutputCleared(ServerEvent, tag="output_audio_buffer.cleared"):
    response_id: str


class ItemAddedEvent(ServerEvent, tag="conversation.item.added"):
    item: AnyItem
    previous_item_id: str | None


class ItemDoneEvent(ServerEvent, tag="conversation.item.done"):
    item: AnyItem
    previous_item_id: str | None


class ItemRetrieved(ServerEvent, tag="conversation.item.retrieved"):
    item: AnyItem


class ItemTruncatedEvent(ServerEvent, tag="conversation.item.truncated"):
    item_id: str
    audio_end_ms: int
    content_index: int = 0


class ItemDeletedEvent(ServerEvent, tag="conversation.item.deleted"):
    item_id: str


class TranscriptionDelta(ServerEvent, tag="conversation.item.input_audio_transcription.delta"):
    item_id: str
    delta: str
    content_index: int = 0


class Duration(Struct, kw_only=True):
    seconds: float
    type: Literal["duration"] = "duration"


class TranscriptionCompleted(ServerEvent, tag="conversation.item.input_audio_transcription.completed"):
    item_id: str
    transcript: str
    usage: Duration
    content_index: int = 0


class StatusError(Struct, kw_only=True):
    type: str
    code: str
    message: str


class StatusDetails(Struct, kw_only=True, omit_defaults=True):
    type: str
    reason: str | None = None
    error: StatusError | None = None


class InputTokens(Struct, kw_only=True):
    text_tokens: int
    audio_tokens: int = 0
    image_tokens: int = 0
    cached_tokens: int = 0


class OutputTokens(Struct, kw_only=True):
    text_tokens: int
    audio_tokens: int = 0


class Usage(Struct, kw_only=True):
    total_tokens: int
    input_tokens: int
    output_tokens: int
    input_token_details: InputTokens
    output_token_details: OutputTokens


class ResponseOutput(Struct, kw_only=True):
    format: Format
    voice: str


class ResponseAudioOut(Struct, kw_only=True):
    output: ResponseOutput


class RealtimeResponse(Struct, kw_only=True):
    id: str
    status: str
    output: list[AnyItem]
    conversation_id: str | None
    output_modalities: list[str]
    max_output_tokens: MaxTokens
    audio: ResponseAudioOut
    metadata: dict[str, str] | None
    status_details: StatusDetails | None = None
    usage: Usage | None = None
    object: Literal["realtime.response"] = "realtime.response"


class ResponseCreated(ServerEvent, tag="response.created"):
    response: RealtimeResponse


class ResponseDone(ServerEvent, tag="response.done"):
    response: RealtimeResponse


class OutputItemAdded(ServerEvent, tag="response.output_item.added"):
    response_id: str
    output_index: int
    item: AnyItem


class OutputItemDone(ServerEvent, tag="response.output_item.done"):
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
    part: ContentPart


class ContentPartDone(InContent, tag="response.content_part.done"):
    part: ContentPart


class TextDelta(InContent, tag="response.output_text.delta"):
    delta: str


class TextDone(InContent, tag="response.output_text.done"):
    text: str


class AudioDelta(InContent, tag="response.output_audio.delta"):
    delta: bytes
    """Base64 on the wire, in the session's output format."""


class AudioDone(InContent, tag="response.output_audio.done"):
    pass


class TranscriptDelta(InContent, tag="response.output_audio_transcript.delta"):
    delta: str


class TranscriptDone(InContent, tag="response.output_audio_transcript.done"):
    transcript: str


class ArgumentsDelta(InItem, tag="response.function_call_arguments.delta"):
    call_id: str
    delta: str


class ArgumentsDone(InItem, tag="response.function_call_arguments.done"):
    call_id: str
    name: str
    arguments: str


encode = msgspec.json.Encoder().encode
"""One server event as UTF-8 JSON."""
