"""Carries out a client's events on its call, for any transport of Realtime events."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from voicepipe.agent import Agent
from voicepipe.base.error_texts import shown
from voicepipe.base.errors import CallError, InputEmpty, ItemExists, ItemMismatch, ItemUnknown, NoReply, ReplyActive
from voicepipe.call_api import CallControl, ReplyRequest
from voicepipe.call_settings import CallSettings
from voicepipe.conversation.events import Item
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.realtime import client_events as ask
from voicepipe.ingress.realtime import server_events as say
from voicepipe.ingress.realtime.bounds import (
    check_input,
    check_item,
    check_number,
    check_room,
    check_session,
    check_words,
)
from voicepipe.ingress.realtime.items import ItemIn, ReferenceIn, item_of, wire_item
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.rights import Rights
from voicepipe.ingress.realtime.session import VOICE, Session, tool_choice, voice_name
from voicepipe.ingress.realtime.translate import Translator
from voicepipe.ingress.wire_errors import WireError

logger = logging.getLogger(__name__)

SLACK_MS = 100
"""Milliseconds by which a client may claim to have played more than it was sent, since its clock may be off; beyond
that it is wrong."""
SHOWN = 64
"""Characters of an unknown voice's name that the log shows."""

Emit = Callable[[say.ServerEvent], None]


class ClientRequest(NamedTuple):
    """The context of one client's event: when it came, how this client alone is answered, and what it may change."""

    arrived: float
    answer: Emit
    rights: Rights


def sound_line(hosted: HostedCall) -> WebSocketLine | None:
    """The line of a call whose sound travels in events, both ways; None: it travels elsewhere."""
    return hosted.line if isinstance(hosted.line, WebSocketLine) else None


class AskedVoices:
    """The voices that one call's clients ask for. Stock clients send OpenAI's names, which no engine here has: such a
    name changes nothing, and the agent's voice goes on speaking. The log has one line of it."""

    def __init__(self, call: CallControl) -> None:
        self._call = call
        self._logged = False

    def knows(self, voice: str) -> bool:
        """Whether there is a voice of this name. Empty is the default, which there always is."""
        if voice in ("", self._call.voice_for(voice)):
            return True
        if not self._logged:
            self._logged = True
            logger.info("%s: a client asks for the voice %r, which is not here, so the voice stays as it is "
                        "(GET /v1/voices lists those that are)", self._call.id, voice[:SHOWN])  # fmt: skip
        return False

    def known(self, asked: Session, before: str) -> Session:
        """`asked`, with the voice of `before` where there is no voice of that name."""
        voice = asked.audio.output.voice
        return asked if voice == before or self.knows(voice) else asked.replaced(VOICE, before)

    def echoed(self, asked: Session, before: str) -> Session:
        """`asked`; a client that sends back the voice it was shown asks for no other than the one `before`."""
        echoes = asked.audio.output.voice == self._call.voice_for(before)
        return asked.replaced(VOICE, before) if echoes else asked


class ClientControl:
    """Decodes clients' events and carries them out on one call; `emit` sends the results to all of its clients."""

    def __init__(self, hosted: HostedCall, translator: Translator, emit: Emit) -> None:
        self._hosted = hosted
        self._call = hosted.control
        self._line = hosted.line
        self._sound = sound_line(hosted)
        self._translator = translator
        self._emit = emit
        self._limits = hosted.limits
        self._voices = AskedVoices(self._call)
        self._begin(translator.session)

    def _begin(self, asked: Session) -> None:
        """Apply the session with which the call was asked for."""
        session = self._voices.known(asked, self._agent.voice)
        if session != asked:
            self._call.configure(session.settings(self._call.settings))
        self._adopt(session)

    def _adopt(self, session: Session) -> None:
        self._translator.session = session
        self._translator.voice = self._call.voice_for(session.audio.output.voice)

    def agent_changed(self, settings: CallSettings) -> None:
        """Another agent has taken the call over: clients see its session."""
        self._adopt(self._translator.session.of_agent(settings))
        self._emit(say.SessionUpdated(session=self._translator.shown))

    def show_voice(self) -> None:
        """Show clients the session with the voice that speaks, if it is another than before, as it may be in another
        language. Not inside a response, which has one voice for them: then once it is done."""
        voice = self._call.voice_for(self._translator.session.audio.output.voice)
        if voice != self._translator.voice and self._translator.response_id is None:
            self._translator.voice = voice
            self._emit(say.SessionUpdated(session=self._translator.shown))

    async def handle(self, raw: str | bytes, arrived: float, answer: Emit, rights: Rights) -> None:
        """Carry out one message, which reached the socket at the monotonic second `arrived`. Never raises: errors go by
        `answer` to the client that asked; events go to all clients."""
        try:
            event = ask.decode(raw, self._limits.event_bytes)
        except WireError as error:
            return answer(say.ErrorEvent.of(error, ask.event_id(raw, self._limits.event_bytes)))
        try:
            await _HANDLERS[type(event)](self, event, ClientRequest(arrived, answer, rights))
        except WireError as error:
            answer(say.ErrorEvent.of(error, event.event_id))
        except CallError as error:
            answer(say.ErrorEvent.of(_call_error(event, error), event.event_id))
        except Exception as error:
            said = shown(error, f"{self._call.id}: {type(event).__name__}")
            failure = WireError("server_error", said, kind="server_error")
            answer(say.ErrorEvent.of(failure, event.event_id))

    @property
    def _agent(self) -> Agent:
        return self._call.settings.agent

    async def _session_update(self, event: ask.SessionUpdate, asked: ClientRequest) -> None:
        before = self._translator.session
        session = self._voices.echoed(before.updated(event.session), voice := before.audio.output.voice)
        check_session(session, self._limits)
        session, refused = asked.rights.session(before, session, self._call.settings)
        session = self._voices.known(session, voice)
        for error in refused:
            asked.answer(say.ErrorEvent.of(error, event.event_id))
        self._adopt(session)
        if self._sound:
            self._sound.set_formats(session.audio.input.format, session.audio.output.format)
        self._call.configure(session.settings(self._call.settings))
        self._emit(say.SessionUpdated(session=self._translator.shown))

    async def _append(self, event: ask.InputAppend, asked: ClientRequest) -> None:
        if self._sound is None:
            raise WireError("invalid_value", self._line.sound_comes, "type")
        for chunk in event.chunks():
            await self._sound.append(chunk, asked.arrived)

    async def _commit(self, event: ask.InputCommit, asked: ClientRequest) -> None:
        await self._line.flush()
        self._call.commit_input()

    async def _clear(self, event: ask.InputClear, asked: ClientRequest) -> None:
        await self._line.flush()
        self._call.clear_input()
        self._emit(say.InputCleared())

    async def _output_clear(self, event: ask.OutputClear, asked: ClientRequest) -> None:
        # Our audio is paced, so a WebSocket's output can be cleared as a WebRTC call's can: the reply stops.
        response_id = self._translator.response_id
        with suppress(NoReply):
            self._call.cancel_reply(None)
            if self._translator.audio_in_events:  # Elsewhere it is said whenever a reply is cut.
                self._emit(say.OutputCleared(response_id=response_id or ""))

    async def _item_create(self, event: ask.ItemCreate, asked: ClientRequest) -> None:
        item = item_of(event.item)
        asked.rights.check_item(item, self._agent, "item")
        check_item(item, self._call.size(), self._limits)
        self._call.add_item(item, event.previous_item_id)

    async def _item_retrieve(self, event: ask.ItemRetrieve, asked: ClientRequest) -> None:
        asked.answer(say.ItemRetrieved(item=wire_item(self._call.item(event.item_id))))

    async def _item_truncate(self, event: ask.ItemTruncate, asked: ClientRequest) -> None:
        end = event.audio_end_ms
        if sent := int(self._hosted.sent_ms(event.item_id)):
            if end > sent + SLACK_MS:
                raise WireError("invalid_value", f"Audio content of {sent}ms is already shorter than {end}ms",
                                "audio_end_ms")  # fmt: skip
            end = min(end, sent)
        self._call.truncate(event.item_id, end)

    async def _item_delete(self, event: ask.ItemDelete, asked: ClientRequest) -> None:
        asked.rights.check_delete(self._call.item(event.item_id), self._agent)
        self._call.delete_item(event.item_id)

    async def _response_create(self, event: ask.ResponseCreate, asked: ClientRequest) -> None:
        check_room(self._call.size(), self._limits)
        params = event.response or ask.ResponseParams()
        asked.rights.check_response(params, self._translator.session, self._agent)
        check_number(params.input or (), self._limits)
        request = self._request(params, asked.rights)
        check_input(request.input or (), self._limits)
        for n, item in enumerate(request.input or ()):
            asked.rights.check_item(item, self._agent, f"response.input[{n}]")
        self._call.respond(request)

    async def _response_cancel(self, event: ask.ResponseCancel, asked: ClientRequest) -> None:
        self._call.cancel_reply(event.response_id)

    def _request(self, params: ask.ResponseParams, rights: Rights) -> ReplyRequest:
        voice = voice_name(params.audio.output.voice) if params.audio and params.audio.output else None
        if not isinstance(voice, str | None):
            raise WireError("invalid_type", "Invalid type for 'response.audio.output.voice': expected a name.",
                            "response.audio.output.voice")  # fmt: skip
        if voice and not self._voices.knows(voice):
            voice = None
        check_words("response", params.instructions, params.tools, self._limits)
        modalities = params.output_modalities
        limit = params.max_output_tokens
        return ReplyRequest(
            instructions=rights.meant(params.instructions, self._call.settings),
            tools=None if params.tools is None else tuple(tool.spec for tool in params.tools),
            tool_choice=None if params.tool_choice is None else tool_choice(params.tool_choice),
            modality=None if modalities is None else "audio" if "audio" in modalities else "text",
            max_tokens=None if limit is None or limit == "inf" else limit,
            voice=voice,
            metadata=params.metadata,
            conversation=params.conversation or "auto",
            input=None if params.input is None else tuple(self._input(n, item) for n, item in enumerate(params.input)),
        )

    def _input(self, n: int, item: ItemIn) -> Item:
        param = f"response.input[{n}]"
        if not isinstance(item, ReferenceIn):
            return item_of(item, param)
        try:
            return self._call.item(item.id or "")
        except ItemUnknown:
            raise WireError("invalid_value", f"Item '{item.id}' is not in the conversation.", f"{param}.id") from None


_HANDLERS: dict[type[ask.ClientEvent], Callable[[ClientControl, Any, ClientRequest], Awaitable[None]]] = {
    ask.SessionUpdate: ClientControl._session_update,
    ask.InputAppend: ClientControl._append,
    ask.InputCommit: ClientControl._commit,
    ask.InputClear: ClientControl._clear,
    ask.OutputClear: ClientControl._output_clear,
    ask.ItemCreate: ClientControl._item_create,
    ask.ItemRetrieve: ClientControl._item_retrieve,
    ask.ItemTruncate: ClientControl._item_truncate,
    ask.ItemDelete: ClientControl._item_delete,
    ask.ResponseCreate: ClientControl._response_create,
    ask.ResponseCancel: ClientControl._response_cancel,
}

_CODES: dict[tuple[type[ask.ClientEvent], type[CallError]], tuple[str, str | None]] = {
    (ask.InputCommit, InputEmpty): ("input_audio_buffer_commit_empty", None),
    (ask.ItemCreate, ItemExists): ("item_create_duplicate_item_id", "item.id"),
    (ask.ItemCreate, ItemUnknown): ("item_create_invalid_previous_item_id", "previous_item_id"),
    (ask.ItemRetrieve, ItemUnknown): ("item_retrieve_invalid_item_id", "item_id"),
    (ask.ItemTruncate, ItemUnknown): ("item_truncate_invalid_item_id", "item_id"),
    (ask.ItemTruncate, ItemMismatch): ("invalid_value", "item_id"),
    (ask.ItemDelete, ItemUnknown): ("item_delete_invalid_item_id", "item_id"),
    (ask.ResponseCreate, ReplyActive): ("conversation_already_has_active_response", None),
    (ask.ResponseCancel, NoReply): ("response_cancel_not_active", None),
}
"""The convention's error code, and the parameter at fault, for each request that a call refuses."""

_SAYINGS = {"response_cancel_not_active": "Cancellation failed: no active response found"}
"""Messages that clients compare; all other errors have the call's own text."""


def _call_error(event: ask.ClientEvent, error: CallError) -> WireError:
    code, param = _CODES.get((type(event), type(error)), ("invalid_value", None))
    return WireError(code, _SAYINGS.get(code, str(error)), param)
