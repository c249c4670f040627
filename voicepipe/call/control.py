"""What a client may ask of a call: `call_api.CallControl`. What cannot be carried out raises; the call goes on."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from voicepipe.agent import CallSettings
from voicepipe.base.errors import InputEmpty, NoReply, ReplyActive
from voicepipe.call.call import Call
from voicepipe.call.call_context import ReplyOrder
from voicepipe.call.manual_turns import KeypadTurns, ManualTurns
from voicepipe.call_api import ReplyRequest, Size
from voicepipe.conversation.events import Item, KeyPressed

MIN_COMMIT_MS = 100


class CallController:
    """The control of one call that its ingress gets. Implements `call_api.CallControl`."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._tasks, self._hearing, self._speaking = call.tasks, call.hearing, call.speaking
        self._conversation, self._turns, self._transfer = call.conversation, call.turns, call.transfer
        self._manual_turns = ManualTurns(call)
        self._dtmf = KeypadTurns(call, self._manual_turns)
        self._asked: asyncio.Future[None] | None = None
        """Begins the reply that a client has asked for, once the words are there that it is to answer."""
        self.id = call.id

    @property
    def settings(self) -> CallSettings:
        return self._speaking.settings

    async def run(self) -> None:
        await self._call.run()

    def close(self) -> None:
        self._call.let_go()

    def configure(self, settings: CallSettings) -> None:
        self._call.configure(settings)

    def voice_for(self, asked: str) -> str:
        return self._call.voice_for(asked)

    def items(self) -> Sequence[Item]:
        return self._conversation.items()

    def size(self) -> Size:
        return self._conversation.size()

    def item(self, item_id: str) -> Item:
        return self._conversation.item(item_id)

    def add_item(self, item: Item, previous_id: str | None) -> None:
        self._conversation.check_theirs(item)
        self._turns.add(item, previous_id)
        self._speaking.discard()

    def delete_item(self, item_id: str) -> None:
        self.item(item_id)
        self._turns.delete(item_id)
        self._speaking.discard()

    def truncate(self, item_id: str, audio_end_ms: int) -> None:
        self._turns.truncate(item_id, audio_end_ms)

    def respond(self, request: ReplyRequest) -> None:
        if self._tasks.over:
            return
        order = self._order(request)
        if self._speaking.making and self._speaking.making is self._call.greeting:
            self._speaking.end("client_cancelled")
        if active := self._speaking.making:
            raise ReplyActive(f"Conversation already has an active response in progress: {active.id}.")
        if self._awaited:
            raise ReplyActive("Conversation already has an active response in progress: it waits for what was said.")
        if pending := self._manual_turns.pending:
            self._asked = self._tasks.spawn(self._respond_after(pending, request))
        else:
            self._speaking.begin(order)

    @property
    def _awaited(self) -> "asyncio.Future[None] | None":
        """The reply that was asked for and has not begun."""
        return self._asked if self._asked and not self._asked.done() else None

    async def _respond_after(self, committing: "asyncio.Future[None]", request: ReplyRequest) -> None:
        await asyncio.wait([committing])
        if self._speaking.making:
            self._speaking.stop("client_cancelled")  # It began while the commit was waited for.
        self._speaking.begin(self._order(request))  # Anew: the turn is part of the conversation now.

    def _order(self, request: ReplyRequest) -> ReplyOrder:
        changes = {
            "instructions": request.instructions,
            "tools": request.tools,
            "tool_choice": request.tool_choice,
            "modality": request.modality,
            "max_tokens": request.max_tokens,
            "voice": request.voice,
        }
        settings = msgspec.structs.replace(self.settings, **{k: v for k, v in changes.items() if v is not None})
        remembered = request.conversation == "auto"
        # Instructions or input of its own say what the client wants to hear, whatever the caller said.
        plain = remembered and request.instructions is None and request.input is None
        if plain and self._conversation.unintelligible():
            return replace(self._speaking.excuse(settings), metadata=request.metadata)
        order = self._speaking.order(settings, items=request.input)
        return replace(order, metadata=request.metadata, remembered=remembered)

    def cancel_reply(self, response_id: str | None) -> None:
        reply = self._speaking.making
        if response_id is None and (awaited := self._awaited):
            self._asked = None
            awaited.cancel()
            if not reply:
                return
        if reply is None or response_id not in (None, reply.id):
            raise NoReply("Cancellation failed: no active response found")
        self._speaking.end("client_cancelled")

    def commit_input(self) -> None:
        if self._tasks.over:
            return
        if self._hearing.uncommitted_ms < MIN_COMMIT_MS:
            raise InputEmpty("Nothing to commit: less than 100 ms of audio since the last commit.")
        self._manual_turns.end_turn()

    def clear_input(self) -> None:
        self._manual_turns.clear()

    def transfer(self, target: str) -> None:
        self._transfer.by_program(target)

    def press(self, key: str) -> None:
        self._call.emit(KeyPressed(key, int(time.time())))
        self._dtmf.press(key)
