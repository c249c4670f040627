"""What a client may ask of a call: `call_api.CallControl`. What cannot be carried out raises; the call goes on."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from voicepipe.agent import CallSettings
from voicepipe.audio import samples_to_ms
from voicepipe.call.call import Call
from voicepipe.call.commits import Commits
from voicepipe.call.dtmf import Dtmf
from voicepipe.call.hang_up import HangUp
from voicepipe.call.studio import Order
from voicepipe.call.transfer import Transfer
from voicepipe.call_api import ReplyRequest, Size
from voicepipe.errors import InputEmpty, NoReply, ReplyActive
from voicepipe.turn.events import Item, KeyPressed

MIN_COMMIT_MS = 100


class Control:
    """A call as its ingress sees it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._dialogue = call.dialogue
        self._commits = Commits(call)
        self._dtmf = Dtmf(call, self._commits)
        self._transfer = Transfer(call)
        self._dialogue.on_transfer = self._transfer.by_model
        self._dialogue.on_goodbye = HangUp(call).by_model
        self._errands = self._dialogue.studio.errands
        self._errands.on_over = self._tool_over
        self._asked: asyncio.Task[None] | None = None
        """Begins the reply that a client has asked for, once the words are there that it is to answer."""
        self.id = call.id

    @property
    def settings(self) -> CallSettings:
        return self._dialogue.settings

    async def run(self) -> None:
        try:
            await self._call.run()
        finally:
            self.close()

    def close(self) -> None:
        self._errands.leave()
        self._call.let_go()

    def _tool_over(self) -> None:
        """The conversation has a result: a reply that is prepared does not know it, and one may be owed for it."""
        self._dialogue.discard()
        self._call.catch_up()

    def configure(self, settings: CallSettings) -> None:
        self._call.configure(settings)

    def items(self) -> Sequence[Item]:
        return self._dialogue.studio.history.visible()

    def size(self) -> Size:
        history = self._dialogue.studio.history
        return Size(history.count, history.bytes)

    def item(self, item_id: str) -> Item:
        return self._dialogue.studio.history.shown(item_id)

    def add_item(self, item: Item, previous_id: str | None) -> None:
        self._dialogue.studio.history.check_theirs(item)
        self._dialogue.add(item, previous_id)
        self._dialogue.discard()

    def delete_item(self, item_id: str) -> None:
        self.item(item_id)
        self._dialogue.delete(item_id)
        self._dialogue.discard()

    def truncate(self, item_id: str, audio_end_ms: int) -> None:
        self._dialogue.truncate(item_id, audio_end_ms)

    def respond(self, request: ReplyRequest) -> None:
        if self._call.over:
            return
        order = self._order(request)
        if self._dialogue.making and self._dialogue.making is self._call.greeting:
            self._dialogue.end("client_cancelled")
        if active := self._dialogue.making:
            raise ReplyActive(f"Conversation already has an active response in progress: {active.id}.")
        if self._awaited:
            raise ReplyActive("Conversation already has an active response in progress: it waits for what was said.")
        if pending := self._commits.pending:
            self._asked = self._call.spawn(self._respond_after(pending, request))
        else:
            self._respond(order)

    @property
    def _awaited(self) -> "asyncio.Task[None] | None":
        """Asked for, and not begun."""
        return self._asked if self._asked and not self._asked.done() else None

    async def _respond_after(self, committing: "asyncio.Task[None]", request: ReplyRequest) -> None:
        await asyncio.wait([committing])
        if self._dialogue.making:
            self._dialogue.stop("client_cancelled")  # It began while the commit was waited for.
        self._respond(self._order(request))  # Anew: the turn is part of the conversation now.

    def _respond(self, order: Order) -> None:
        self._dialogue.begin(order)
        self._call.replying()

    def _order(self, request: ReplyRequest) -> Order:
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
        if plain and self._dialogue.studio.history.unintelligible():
            return replace(self._dialogue.excuse(settings), metadata=request.metadata)
        order = self._dialogue.studio.order(settings, items=request.input)
        return replace(order, metadata=request.metadata, remembered=remembered)

    def cancel_reply(self, response_id: str | None) -> None:
        reply = self._dialogue.making
        if response_id is None and (awaited := self._awaited):
            self._asked = None
            awaited.cancel()
            if not reply:
                return
        if reply is None or response_id not in (None, reply.id):
            raise NoReply("Cancellation failed: no active response found")
        self._dialogue.end("client_cancelled")

    def commit_input(self) -> None:
        if samples_to_ms(self._call.ear.now - self._call.committed_to) < MIN_COMMIT_MS:
            raise InputEmpty("Nothing to commit: less than 100 ms of audio since the last commit.")
        self._commits.end_turn()

    def clear_input(self) -> None:
        self._call.clear()

    def transfer(self, target: str) -> None:
        self._transfer.by_program(target)

    def press(self, key: str) -> None:
        self._call.emit(KeyPressed(key, int(time.time())))
        self._dtmf.press(key)
