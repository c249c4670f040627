"""Whose turn it is in ONE call: the facts of the caller's side go to the turn machine, and what that decides to
`hearing.py` and `speaking.py`. This file joins the two.

All of it happens on one event loop, and `feed` is synchronous: what follows from one fact comes before the next.
"""

import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol

from voicepipe.call.call_context import CallContext
from voicepipe.call.call_language import CallLanguage, heard_in
from voicepipe.call.call_tasks import CallTasks
from voicepipe.call.conversation import Conversation
from voicepipe.call.hearing import Hearing
from voicepipe.call.no_input_prompts import NoInputPrompts
from voicepipe.call.pending_replies import PendingReplies
from voicepipe.call.speaking import Speaking
from voicepipe.call.utterance import Utterance
from voicepipe.call_settings import CallSettings
from voicepipe.config import Config
from voicepipe.conversation.events import Item
from voicepipe.conversation.prompt import ToolCall
from voicepipe.turn.facts import Action, Fact, ReplyEnded, Replying
from voicepipe.turn.machine import TurnMachine
from voicepipe.turn.turn_state import TurnPermissions


class CallEnder(Protocol):
    """Ends a call: because the model or a program asks for it, or because nobody speaks. Implemented by `Call`."""

    def calls_own_tool(self, call: ToolCall) -> None:
        """As `ReplyListener.calls_own_tool`."""

    async def hang_up(self, reason: str, detail: str = "") -> None:
        """End it; both as `CallEnded` tells them."""

    def configure(self, settings: CallSettings) -> None:
        """Use these settings from the next *prepare* on."""


class Turns:
    """Whose turn it is in one call: feeds facts to the turn machine, and has hearing and speaking carry out its
    actions."""

    def __init__(
        self, context: CallContext, config: Config, settings: CallSettings, tasks: CallTasks, call: CallEnder
    ) -> None:
        us: Turns = weakref.proxy(self)
        """Our parts know us by this weak reference: a cycle would keep the call's sound until the collector ran."""
        self.conversation = conversation = Conversation(context)
        self.hearing = Hearing(context, config, settings, tasks, us)
        self.speaking = Speaking(context, conversation, settings, tasks, us)
        self.pending_replies = PendingReplies(context, conversation, self.hearing, self.speaking, tasks)
        self.no_input_prompts = NoInputPrompts(context, self.speaking, self.pending_replies)
        self.language = CallLanguage(
            settings, lambda changed: call.configure(changed), lambda: us.speaking.settings,
            context.history.said_last, context.emit,
        )  # fmt: skip
        self._history = context.history
        self._tasks = tasks
        self._call = call
        self._machine = TurnMachine(config.turn)
        self._facts: deque[Fact] = deque()
        """Facts not dealt with yet: what an action brings about comes after all that its fact called for."""
        self._acting = False

    # Facts in, actions out.

    def feed(self, fact: Fact) -> None:
        """Have the turn machine decide about a fact, and carry out its actions."""
        self._facts.append(fact)
        if self._acting:
            return
        self._acting = True
        try:
            while self._facts:
                for action in self._machine.on(self._facts.popleft(), self._may):
                    ACTIONS[action](self)
        finally:
            self._acting = False

    @property
    def _may(self) -> TurnPermissions:
        settings = self.speaking.settings
        detection, answers = settings.turn_detection, self.pending_replies.answers
        interrupts = detection is None or detection.interrupt_response
        return TurnPermissions(answers, interrupts, ends=detection is not None, reads=settings.agent.reads_ahead)

    def block_heard(self) -> None:
        """20 ms have passed for the caller."""
        if self.hearing.utterance:
            self.no_input_prompts.wait(self.hearing.now)
        else:
            self.no_input_prompts.passes(self.hearing.now, loud=self.hearing.sound.loud)

    def words_known(self) -> None:
        """As `TurnTaking.words_known`: they may be in another language, whose rules judge them then."""
        if self.hearing.utterance:
            self.language.hears(self.hearing.utterance)

    def _open(self) -> None:
        self.hearing.open()
        self.no_input_prompts.back(self.hearing.now)

    def _guess(self) -> None:
        utterance = self.hearing.utterance
        if utterance and self.hearing.partial_is_whole:
            self.language.guesses(utterance)
        if utterance and (turn := self.hearing.guess()):
            self.speaking.prepare(turn, utterance.partial, utterance.record)
        else:
            self.speaking.discard()

    def _prepare(self) -> None:
        utterance = self.hearing.utterance
        assert utterance
        self.speaking.prepare(utterance.turn_words, utterance.text, utterance.record)

    def discard(self) -> None:
        """The words that were asked for, and the reply to them, mean nothing any more."""
        self.hearing.stop_settling()
        self.speaking.discard()

    def join(self, utterance: Utterance) -> None:
        """Make the closed utterance the caller's turn in the conversation."""
        self.hearing.announce(utterance)
        self.hearing.announce_end(utterance, utterance.end)
        utterance.record.language = self.language.keeps(utterance)
        self.speaking.freeze_prompt()
        item = Item(utterance.item_id, text=utterance.text, audio_ms=utterance.audio_ms)
        self.conversation.add_turn(item, heard_in(utterance))
        self.language.emit_change()

    def _answer(self) -> None:
        last = self.hearing.last
        assert last
        self.speaking.answer(last.turn_words, last.record)

    def _reply_later(self) -> None:
        if self.hearing.last and self.hearing.last.turn_words:
            self.pending_replies.turn()

    def _drop(self, last: Utterance | None = None) -> None:
        self.discard()
        self.hearing.drop(last)
        self.language.drops()
        self.pending_replies.catch_up()

    def _cut(self) -> None:
        self.hearing.announce()
        self.speaking.stop("turn_detected")

    def _reopen(self) -> None:
        self.hearing.reopen()
        self.speaking.repair()

    # The conversation changes while a reply may be about to read it.

    def add(self, item: Item, after: str | None = None) -> None:
        """Raises ItemExists, ItemUnknown."""
        self.speaking.freeze_prompt()
        self.conversation.add(item, after)

    def delete(self, item_id: str) -> None:
        """Raises ItemUnknown."""
        self.speaking.freeze_prompt()
        self.conversation.delete(item_id)

    def truncate(self, item_id: str, audio_end_ms: int) -> None:
        """The client knows exactly how much of an item its caller heard. Raises ItemUnknown, ItemMismatch."""
        self._history.shown(item_id)
        self.speaking.silence_item(item_id)
        spoken = self.conversation.spoken(item_id, audio_end_ms)
        self.speaking.freeze_prompt()
        if self.conversation.truncate(item_id, spoken, audio_end_ms):
            self.speaking.discard()  # It answers words that nobody has heard.

    # As `ReplyListener`.

    def reply_began(self) -> None:
        self.feed(Replying())

    def reply_ended(self) -> None:
        self.no_input_prompts.wait(self.hearing.now)
        self.feed(ReplyEnded())
        self.hearing.forget()
        self.pending_replies.catch_up()
        # The result of a tool that came during the goodbye comes first.
        if self.no_input_prompts.goodbye and not (self.speaking.reply or self.pending_replies.works):
            self._tasks.spawn(self._call.hang_up("no_input"))

    def calls_own_tool(self, call: ToolCall) -> None:
        self._call.calls_own_tool(call)


ACTIONS: dict[Action, Callable[[Turns], None]] = {
    Action.OPEN: Turns._open,
    Action.ANNOUNCE: lambda turns: turns.hearing.announce(),
    Action.SETTLE: lambda turns: turns.hearing.settle(),
    Action.GUESS: Turns._guess,
    Action.PREPARE: Turns._prepare,
    Action.DISCARD: Turns.discard,
    Action.COMMIT: lambda turns: turns.join(turns.hearing.close()),
    Action.ANSWER: Turns._answer,
    Action.REPLY_LATER: Turns._reply_later,
    Action.DROP: Turns._drop,
    Action.DROP_OVER: lambda turns: turns._drop(turns.hearing.last),
    Action.DUCK: lambda turns: turns.speaking.duck(),
    Action.HOLD: lambda turns: turns.speaking.hold(),
    Action.RESUME: lambda turns: turns.speaking.resume(),
    Action.CUT: Turns._cut,
    Action.REOPEN: Turns._reopen,
}
