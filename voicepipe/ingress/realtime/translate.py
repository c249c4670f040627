"""A call's events as wire events, in the order that stock clients expect. Pure: keeps ids and counts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from voicepipe.conversation.events import (
    CallEnded,
    CallEvent,
    Item,
    ItemAdded,
    ItemDeleted,
    ItemTruncated,
    KeyPressed,
    ReplyDone,
    ReplyItemAdded,
    ReplyItemDone,
    ReplyStarted,
    ReplyText,
    SpeechStarted,
    SpeechStopped,
    ToolUse,
    WordsHeard,
)
from voicepipe.conversation.timing import TurnSummary
from voicepipe.ingress.realtime import server_events as wire
from voicepipe.ingress.realtime.items import ContentPart, content_part, wire_item
from voicepipe.ingress.realtime.session import VOICE, Session

RECORD_KEY = "voicepipe.turn"
"""Key of the metadata in `response.created` and `response.done` that has the turn's milliseconds."""

TOOL_KEY = "voicepipe.tool."
"""Prefix of the metadata keys for the agent's tools that ran in a response, numbered from 1."""
MOST_TOOLS = 8

CUT = 16
"""Characters of a tool's arguments or result that are left out at a time."""

METADATA_CHARS = 512
"""Characters that the convention allows a metadata value."""

_REASONS = {"turn_detected", "client_cancelled", "max_output_tokens", "content_filter"}

Events = list[wire.ServerEvent]


@dataclass(slots=True)
class _OutputItem:
    """The item that the response in progress is making."""

    item_id: str
    index: int
    previous_id: str | None


class Translator:
    """Translates the events of one call into its clients' events. `session` is replaced when a client updates it, and
    `voice` is the name of the one that speaks.

    `audio_in_events`: our sound travels in events; otherwise events say when it begins and ends. `tells_tools`: a
    response's metadata has the agent's own tools."""

    def __init__(
        self, session: Session, conversation_id: str, *, audio_in_events: bool, tells_tools: bool = True
    ) -> None:
        self.session = session
        self.voice = session.audio.output.voice
        self._tells_tools = tells_tools
        self.audio_in_events = audio_in_events
        self._sounding = False
        """The caller hears the response in progress, and its sound is not in events."""
        self._cut: tuple[str, int] | None = None
        """The item that was truncated as its response ended, and its milliseconds: the call may report the same once
        more."""
        self.response_id: str | None = None
        """The response in progress."""
        self._conversation_id: str | None = conversation_id
        self._conversation: str | None = None
        self._modality = "audio"
        self._metadata: dict[str, str] | None = None
        self._outputs = 0
        self._output: _OutputItem | None = None

    @property
    def shown(self) -> Session:
        """The session as clients see it: with the voice that speaks."""
        return self.session.replaced(VOICE, self.voice)

    def __call__(self, event: CallEvent) -> Events:
        """The wire events for an event of the call."""
        return _TABLE[type(event)](self, event)

    def catch_up(self, reply: Iterable[CallEvent], sent_ms: Callable[[str], float]) -> None:
        """Take over the reply in progress, by the events of `HostedCall.reply`, as if all of them had been
        translated."""
        self.response_id = self._output = self._cut = None
        self._sounding = False
        for event in reply:
            self(event)
            if isinstance(event, ReplyItemAdded) and sent_ms(event.item.id):
                self.audio(b"")

    def audio(self, data: bytes) -> Events:
        """Reply audio, encoded in the session's output format; it belongs to the item being made."""
        if self._output is None:
            return []
        if self.audio_in_events:
            return [wire.AudioDelta(**self._here(), delta=data)]
        if self._sounding:
            return []
        self._sounding = True
        return [wire.OutputStarted(response_id=self.response_id or "")]

    def _here(self) -> dict[str, Any]:
        assert self.response_id and self._output
        return {
            "response_id": self.response_id,
            "item_id": self._output.item_id,
            "output_index": self._output.index,
        }

    # --- the caller

    def _speech_started(self, event: SpeechStarted) -> Events:
        return [wire.SpeechStartedEvent(audio_start_ms=event.at_ms, item_id=event.item_id)]

    def _speech_stopped(self, event: SpeechStopped) -> Events:
        return [wire.SpeechStoppedEvent(audio_end_ms=event.at_ms, item_id=event.item_id)]

    def _key_pressed(self, event: KeyPressed) -> Events:
        return [wire.DtmfReceived(event=event.key, received_at=event.at)]

    def _words_heard(self, event: WordsHeard) -> Events:
        if self.session.audio.input.transcription is None:
            return []
        return [wire.CallerTranscriptDelta(item_id=event.item_id, delta=event.delta)]

    def _item_added(self, event: ItemAdded) -> Events:
        item, previous = event.item, event.previous_id
        out: Events = [
            wire.ItemAddedEvent(item=wire_item(item), previous_item_id=previous),
            wire.ItemDoneEvent(item=wire_item(item), previous_item_id=previous),
        ]
        if not event.spoken:
            return out
        out.insert(0, wire.InputCommitted(item_id=item.id, previous_item_id=previous))
        if self.session.audio.input.transcription is not None:
            usage = wire.Duration(seconds=(item.audio_ms or 0) / 1000)
            completed = wire.CallerTranscriptCompleted(item_id=item.id, transcript=item.text, usage=usage)
            if event.languages is not None:
                completed.languages = [wire.DetectedLanguage(code=tag) for tag in event.languages]
            out.append(completed)
        return out

    def _item_truncated(self, event: ItemTruncated) -> Events:
        metadata, self._cut = self._cut, None
        if metadata == (event.item_id, event.audio_end_ms):
            return []  # with the end of the response
        return [wire.ItemTruncatedEvent(item_id=event.item_id, audio_end_ms=event.audio_end_ms)]

    def _cut_short(self, event: ReplyDone) -> Events:
        """Truncate the item of the response in progress. Where sound travels in events, clients report themselves what
        they have played; elsewhere we do."""
        cut = [item for item in event.items if item.kind == "message"] if self._conversation else []
        for item in cut:
            self._cut = item.id, item.audio_ms or 0
        return [wire.ItemTruncatedEvent(item_id=item.id, audio_end_ms=item.audio_ms or 0) for item in cut]

    def _item_deleted(self, event: ItemDeleted) -> Events:
        return [wire.ItemDeletedEvent(item_id=event.item_id)]

    # --- the reply

    def _reply_started(self, event: ReplyStarted) -> Events:
        self._conversation = self._conversation_id if event.remembered else None
        self.response_id = event.response_id
        self._modality = event.modality
        self._metadata = event.metadata
        self._outputs = 0
        self._output = None
        response = self._response(event.response_id, "in_progress", ())
        if metadata := _of_turn(event.record):
            response.metadata = {**(self._metadata or {}), **metadata}
        return [wire.ResponseCreated(response=response)]

    def _reply_item_added(self, event: ReplyItemAdded) -> Events:
        self._output = _OutputItem(event.item.id, self._outputs, event.previous_id)
        self._outputs += 1
        item = wire_item(replace(event.item, status="in_progress", arguments=""))
        out: Events = [wire.OutputItemAdded(response_id=event.response_id, output_index=self._output.index, item=item)]
        if self._conversation:
            out.append(wire.ItemAddedEvent(item=item, previous_item_id=event.previous_id))
        if event.item.kind == "message":
            part = ContentPart("audio", transcript="") if self._spoken else ContentPart("text", text="")
            out.append(wire.ContentPartAdded(**self._here(), part=part))
        return out

    def _reply_text(self, event: ReplyText) -> Events:
        if self._output is None:
            return []
        delta = wire.ReplyTranscriptDelta if self._spoken else wire.TextDelta
        return [delta(**self._here(), delta=event.delta)]

    def _reply_item_done(self, event: ReplyItemDone) -> Events:
        if self._output is None:
            return []
        item = wire_item(event.item, audio=self._spoken)
        out = (self._call_done if event.item.kind == "function_call" else self._message_done)(event.item)
        out.append(wire.OutputItemDone(response_id=event.response_id, output_index=self._output.index, item=item))
        if self._conversation:
            out.append(wire.ItemDoneEvent(item=item, previous_item_id=self._output.previous_id))
        self._output = None
        return out

    def _message_done(self, item: Item) -> Events:
        here = self._here()
        ends: Events = [wire.TextDone(**here, text=item.text)]
        if self._spoken:
            ends = [wire.AudioDone(**here), wire.ReplyTranscriptDone(**here, transcript=item.text)]
        return [*ends, wire.ContentPartDone(**here, part=content_part(item, audio=self._spoken))]

    def _call_done(self, item: Item) -> Events:
        here = self._here()
        return [
            wire.ArgumentsDelta(**here, call_id=item.call_id, delta=item.arguments),
            wire.ArgumentsDone(**here, call_id=item.call_id, name=item.name, arguments=item.arguments),
        ]

    def _reply_done(self, event: ReplyDone) -> Events:
        response = self._response(event.response_id, event.status, event.items)
        response.status_details = _status_details(event)
        response.usage = _usage(event.input_tokens, event.output_tokens)
        metadata = _of_turn(event.record)
        if self._tells_tools:
            metadata |= {f"{TOOL_KEY}{number}": _short(use) for number, use in enumerate(event.tools[:MOST_TOOLS], 1)}
        if metadata:
            response.metadata = {**(self._metadata or {}), **metadata}
        self.response_id = None
        self._output = None
        done: Events = [wire.ResponseDone(response=response)]
        if self._sounding:
            self._sounding = False
            cut = event.status == "cancelled"
            heard = (wire.OutputCleared if cut else wire.OutputStopped)(response_id=event.response_id)
            done.insert(0 if cut else 1, heard)
            done += self._cut_short(event) if cut else []
        return done

    def _call_ended(self, event: CallEnded) -> Events:
        return []  # the socket says goodbye

    @property
    def _spoken(self) -> bool:
        return self._modality == "audio"

    def _response(self, response_id: str, status: str, items: tuple[Item, ...]) -> wire.RealtimeResponse:
        output = self.session.audio.output
        return wire.RealtimeResponse(
            id=response_id,
            status=status,
            output=[wire_item(item, audio=self._spoken) for item in items],
            conversation_id=self._conversation,
            output_modalities=[self._modality],
            max_output_tokens=self.session.max_output_tokens,
            audio=wire.ResponseAudioSettings(output=wire.ResponseSound(format=output.format, voice=self.voice)),
            metadata=self._metadata,
        )


def _status_details(event: ReplyDone) -> wire.StatusDetails | None:
    if event.status == "completed":
        return None
    if event.status == "failed":
        error = wire.StatusError(type="server_error", code="reply_failed", message=event.reason)
        return wire.StatusDetails(type="failed", error=error)
    return wire.StatusDetails(type=event.status, reason=event.reason if event.reason in _REASONS else None)


def _usage(input_tokens: int, output_tokens: int) -> wire.Usage:
    return wire.Usage(
        total_tokens=input_tokens + output_tokens,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        input_token_details=wire.InputTokens(text_tokens=input_tokens),
        output_token_details=wire.OutputTokens(text_tokens=output_tokens),
    )


def _of_turn(record: TurnSummary) -> dict[str, str]:
    return {RECORD_KEY: _compact(record)} if record.turn_id else {}


def _short(use: ToolUse) -> str:
    """`use` as JSON that fits a metadata value: the longer of its texts is shortened, as long as it is too long."""
    while len(encoded := msgspec.json.encode(use).decode()) > METADATA_CHARS:
        longer = max(("arguments", "result"), key=lambda name: len(msgspec.json.encode(getattr(use, name)).decode()))
        use = msgspec.structs.replace(use, **{longer: getattr(use, longer)[:-CUT]})
    return encoded


def _compact(record: TurnSummary) -> str:
    """`record` as JSON that fits a metadata value: its last fields are left out."""
    figures = msgspec.to_builtins(record)
    while len(text := msgspec.json.encode(figures).decode()) > METADATA_CHARS:
        figures.popitem()
    return text


_TABLE: dict[type[CallEvent], Callable[[Translator, Any], Events]] = {
    SpeechStarted: Translator._speech_started,
    SpeechStopped: Translator._speech_stopped,
    WordsHeard: Translator._words_heard,
    KeyPressed: Translator._key_pressed,
    ItemAdded: Translator._item_added,
    ItemTruncated: Translator._item_truncated,
    ItemDeleted: Translator._item_deleted,
    ReplyStarted: Translator._reply_started,
    ReplyItemAdded: Translator._reply_item_added,
    ReplyText: Translator._reply_text,
    ReplyItemDone: Translator._reply_item_done,
    ReplyDone: Translator._reply_done,
    CallEnded: Translator._call_ended,
}
