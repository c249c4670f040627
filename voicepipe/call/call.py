"""ONE call from the answer to its end: here its parts are made, run, configured and let go, and here is what a client
may ask of it. `turns.py` has what happens in between.

To follow a turn, read `line.py`, `turn/machine.py`, `turns.py`, `hearing.py`, `speaking.py`, `reply.py` and
`playout.py`, in this order.
"""

import asyncio
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from voicepipe.base.error_texts import shown
from voicepipe.base.errors import InputEmpty, NoReply, ReplyActive, cause
from voicepipe.call.call_context import CallContext, CallServices, ReplyOrder, settings_in
from voicepipe.call.call_tasks import CallTasks
from voicepipe.call.key_sending import KeySending
from voicepipe.call.keypad_turns import KeypadTurns
from voicepipe.call.manual_turns import ManualTurns
from voicepipe.call.playout import Playout
from voicepipe.call.reply import Reply
from voicepipe.call.speech import voice_in
from voicepipe.call.transfer import Transfer
from voicepipe.call.tts_cache import FixedPhraseWarmUp
from voicepipe.call.turns import Turns
from voicepipe.call_api import ReplyRequest, Size
from voicepipe.call_settings import CallSettings
from voicepipe.config import Config
from voicepipe.conversation.events import AgentChanged, CallEnded, CallEvent, Item, KeyPressed
from voicepipe.conversation.own_tools import SEND_KEYS, TRANSFER_TOOL
from voicepipe.conversation.prompt import ToolCall
from voicepipe.engines.base import Engines
from voicepipe.line import Line

LOOK_S = 0.1
"""Between looks at whether the caller has something more to say, before the model hangs up."""
MIN_COMMIT_MS = 100
ASKED = ("instructions", "tools", "tool_choice", "modality", "max_tokens", "voice")
"""Settings of the call that a client may ask to be otherwise for one reply."""


class Call:
    """One phone call, from the answer until either side hangs up. Implements `call_api.CallControl`: what cannot be
    carried out raises, and the call goes on.

    `emit` gets every CallEvent, on the event loop, in order.
    """

    def __init__(
        self,
        call_id: str,
        line: Line,
        settings: CallSettings,
        engines: Engines,
        config: Config,
        pop: CallServices,
        emit: Callable[[CallEvent], None],
        clock: Callable[[], float],
    ) -> None:
        self.id = call_id
        self._line, self._emit = line, emit
        self._tasks = tasks = CallTasks(call_id)
        us: Call = weakref.proxy(self)
        """Our parts know us by this weak reference: a cycle would keep the call's sound until the collector ran."""
        self._playout = Playout(line, clock, config.turn.duck_db)
        # A method of `us` would hold the call itself.
        hand_over = lambda settings: us.handed_over(settings)  # noqa: E731
        context = CallContext(call_id, engines, self._playout, pop, config.ladder, clock, emit, hand_over)
        self._context = context
        self._history, self._tool_runs = context.history, context.tool_runs
        self._turns = turns = Turns(context, config, settings, tasks, us)
        self._conversation, self._hearing, self._speaking = turns.conversation, turns.hearing, turns.speaking
        self._pending_replies = turns.pending_replies
        self._manual_turns = ManualTurns(call_id, turns, tasks)
        self._keypad_turns = KeypadTurns(turns, self._manual_turns, tasks, context.ids)
        self._transfer = Transfer(call_id, line, turns, tasks, us)
        self._key_sending = KeySending(context, turns, tasks)
        self._warm_up = FixedPhraseWarmUp(context.speaker, tasks)
        self._greeting: Reply | None = None
        """The greeting, which a client's own reply may replace."""
        self._asked: asyncio.Future[None] | None = None
        """Begins the reply that a client has asked for, once the words are there that it is to answer."""
        self._ending, self._ending_detail = "", ""
        """Why we hang up, as `CallEnded` tells it."""

    async def run(self) -> None:
        """Answer, and go on until either side hangs up. CallEnded is the last event, whatever happens."""
        reason, detail = "error", ""
        try:
            async with self._tasks as tasks:
                for job in (self._playout.run(), self._greet(), self._hearing.gaps.mind()):
                    tasks.spawn(job)
                self._warm_up.begin(self._speaking.settings)
                await self._line.listen(self._hearing)
                reason, detail, tasks.over = self._ending or "caller", self._ending_detail, True
                self._tool_runs.leave()  # A tool that is over now begins no reply: it would never end.
                self._speaking.stop("client_cancelled")
                self._speaking.discard()
                tasks.cancel()
        except* Exception as errors:
            detail = shown(cause(errors), f"call {self.id}")
        finally:
            self._tasks.over = True
            self.close()
            await self._line.hang_up()
            self._emit(CallEnded(reason, detail))

    async def _greet(self) -> None:
        await asyncio.sleep(self._line.setup_ms / 1000)
        speaking, greeting = self._speaking, self._speaking.settings.agent.greeting
        began = speaking.reply or self._pending_replies.waiting or self._hearing.utterance or self._history.items
        if greeting and not began:
            speaking.say(greeting)
            self._greeting = speaking.reply

    def configure(self, settings: CallSettings) -> None:
        """Use these settings from the next *prepare* on: a pending speculation was made for the old ones. Hearing and
        speaking get the same settings."""
        before, self._speaking.settings = self._speaking.settings, settings
        self._speaking.discard()
        sounds = [(each.voice, each.speed, each.agent.language) for each in (before, settings)]
        if self._tasks.running and sounds[0] != sounds[1]:
            self._warm_up.begin(settings)
        self._hearing.configure(settings)

    def handed_over(self, settings: CallSettings) -> CallSettings:
        """Another agent, or the same in another language, goes on with the call; what a client has set for it stays.
        Returns the settings until then."""
        before = self.settings
        if settings.agent.name == before.agent.name:
            self.configure(settings_in(before, settings.agent.language))
            self._turns.language.changed(self.settings)
        else:
            self._context.left[before.agent.name] = before
            # Who gets the call back within one reply has left it since the reply was made.
            after = self._context.left.get(settings.agent.name, settings)
            self.configure(before.handed_to(settings_in(after, settings.agent.language)))
            self._turns.language.handed_over(self.settings)
            self._emit(AgentChanged(self.settings))
        return before

    def calls_own_tool(self, call: ToolCall) -> None:
        """As `ReplyListener.calls_own_tool`."""
        if call.name == TRANSFER_TOOL:
            self._transfer.by_model(call)
        elif call.name == SEND_KEYS:
            self._key_sending.begin(call)
        else:
            self._tasks.spawn(self._hang_up_when_heard())

    async def _hang_up_when_heard(self) -> None:
        """Hang up once the caller has heard the reply in which the model asked for it.

        A voice over the last words may become a turn, which is answered first. The result of a tool that still runs
        comes first, too.
        """
        last = self._conversation.last()
        while self._hearing.utterance or self._pending_replies.works:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        if not (self._speaking.reply or self._pending_replies.waiting) and self._conversation.last() is last:
            await self.hang_up("agent")

    async def hang_up(self, reason: str, detail: str = "") -> None:
        """End the call from our side; both as `CallEnded` tells them."""
        self._ending, self._ending_detail = reason, detail
        await self._line.hang_up()

    def close(self) -> None:
        """Cut the reference cycles that are left: the call has run, or never will. Safe to call twice."""
        self._tool_runs.leave()
        self._context.early_tools.drop_others()
        self._hearing.let_go()

    # What a client asks.

    @property
    def settings(self) -> CallSettings:
        return self._speaking.settings

    def voice_for(self, asked: str) -> str:
        return voice_in(self._context.engines.tts, self.settings.agent, asked)

    def items(self) -> Sequence[Item]:
        return self._history.visible()

    def size(self) -> Size:
        return Size(self._history.count, self._history.bytes)

    def item(self, item_id: str) -> Item:
        return self._history.shown(item_id)

    def add_item(self, item: Item, previous_id: str | None) -> None:
        self._history.check_theirs(item)
        asked = self._history.said_last()
        self._turns.add(item, previous_id)
        if item.kind == "message" and item.role == "user":
            self._turns.language.reads(item.text, asked)
        self._turns.language.emit_change()
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
        if self._speaking.making and self._speaking.making is self._greeting:
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
        changes = {name: value for name in ASKED if (value := getattr(request, name)) is not None}
        settings = msgspec.structs.replace(self.settings, **changes)
        remembered = request.conversation == "auto"
        # Instructions or input of its own say what the client wants to hear, whatever the caller said.
        plain = remembered and request.instructions is None and request.input is None
        if plain and self._history.unintelligible():
            return replace(self._speaking.excuse(settings), metadata=request.metadata)
        order = self._context.order(settings, items=request.input)
        return replace(order, metadata=request.metadata, remembered=remembered)

    def cancel_reply(self, response_id: str | None) -> None:
        reply = self._speaking.making
        if response_id is None and (awaited := self._awaited):
            self._asked = None
            awaited.cancel()
            if not reply:
                return
        if response_id is None and self._key_sending.stop() and not reply:
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
        self._emit(KeyPressed(key, int(time.time())))
        self._keypad_turns.press(key)
