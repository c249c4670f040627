"""The agent's side of one call: the reply that may be heard, and the one that is being prepared."""

from typing import Protocol

from voicepipe.call.call_context import CallContext, ReplyOrder
from voicepipe.call.call_tasks import CallTasks
from voicepipe.call.conversation import Conversation
from voicepipe.call.reply import Reply
from voicepipe.call_settings import CallSettings
from voicepipe.conversation.own_tools import KEYS_INTERRUPTED, SEND_KEYS
from voicepipe.conversation.prompt import Prompt, ToolCall
from voicepipe.conversation.timing import TurnRecord
from voicepipe.languages.known import language_of


class ReplyListener(Protocol):
    """A listener to the replies of one call. Implemented by `Turns`."""

    def reply_began(self) -> None:
        """A reply that no turn of the caller's asked for has begun."""

    def reply_ended(self) -> None:
        """The reply was heard to its end, or the client ended it."""

    def calls_own_tool(self, call: ToolCall) -> None:
        """A reply was heard to its end in which the model asked to transfer the caller, to press keys, or to hang
        up."""


class Speaking:
    """The agent's side of one call: owns its replies, and is the one user of its playout."""

    def __init__(
        self,
        context: CallContext,
        conversation: Conversation,
        settings: CallSettings,
        tasks: CallTasks,
        listener: ReplyListener,
    ) -> None:
        self.settings = settings
        self.reply: Reply | None = None
        """The committed reply; it may be heard until this is None again."""
        self.prompted = 0
        """Number of replies so far that the model made, to all that stood in the conversation."""
        self._context = context
        self._conversation = conversation
        self._ending: list[Reply] = []
        """Replies before `reply` that are over and whose last sound may still be playing, oldest first."""
        self._latest: Reply | None = None
        """The last committed reply. It stays when it is over, since it may turn out to have been a cut-in."""
        self._speculation: Reply | None = None
        self._tasks = tasks
        self._listener = listener

    # Speculation.

    def prepare(self, turn_words: str, new_words: str, record: TurnRecord) -> None:
        """Start the reply to a turn of the caller's behind a closed gate: to `turn_words`, of which `new_words` are not
        in the conversation yet. A reply to the same turn that is being prepared goes on."""
        key = self._as_said(turn_words)
        if self._prepared(key):
            return
        self.discard()
        order = self._context.order(self.settings, new_words, speculative=True)
        self._speculation = self._started(Reply(self._context, order, record, key))

    def _as_said(self, text: str) -> str:
        return language_of(self.settings.agent.language).as_said(text)

    def discard(self) -> None:
        """Drop the speculation. It leaves no trace."""
        reply, self._speculation = self._speculation, None
        if reply:
            reply.discard(self._context.clock())
            self._stop(reply, "")

    def _prepared(self, key: str) -> Reply | None:
        """The speculation, if it answers `key`. If its engine failed it would say the fallback, so it does not count:
        there is time to try again."""
        reply = self._speculation
        return reply if reply and reply.key == key and not reply.failed else None

    # Replies.

    def answer(self, turn: str, record: TurnRecord) -> None:
        """The caller's turn is committed and in the history: let its reply be heard, prepared or not."""
        self.stop("turn_detected")
        key = self._as_said(turn)
        if reply := self._prepared(key):
            record.speculation = "hit"
            self._speculation = None
        else:
            record.speculation = "miss"
            self.discard()
            order = self._context.order(self.settings) if key else self.excuse(self.settings)
            reply = self._started(Reply(self._context, order, record, key))
        self._commit(reply)

    def excuse(self, settings: CallSettings) -> ReplyOrder:
        """The reply to a turn without words: there is nothing in it that the model could answer, and it would answer
        the turn before once more."""
        excuses = settings.agent.not_understood or (settings.agent.fallback,)
        return ReplyOrder(Prompt, settings, excuses[(self._context.history.wordless() - 1) % len(excuses)])

    @property
    def making(self) -> Reply | None:
        """The reply that is not over yet: until it is no other may begin."""
        return self.reply if self.reply and not self.reply.over else None

    @property
    def mute(self) -> bool:
        """Whether the last reply had no words: the caller waits for some."""
        return self._latest is not None and self._latest.mute

    def begin(self, order: ReplyOrder) -> None:
        """A reply that no turn of the caller's asked for. It queues behind the last sound of the one before."""
        self.discard()
        agent = order.settings.agent
        language = agent.language if len(agent.languages) > 1 else ""
        record = TurnRecord(self._context.ids.new("turn"), by_request=True, language=language)
        self._commit(self._started(Reply(self._context, order, record)))
        self._listener.reply_began()

    def _commit(self, reply: Reply) -> None:
        if self.reply:
            self._ending.append(self.reply)  # The new one queues behind it.
        else:
            self._context.playout.level.restore()
        self.reply = self._latest = reply
        if reply.order.text is None:
            self.prompted += 1
        reply.commit()

    def say(self, text: str) -> None:
        """Say exactly `text`."""
        self.begin(ReplyOrder(Prompt, self.settings, text))

    @property
    def audible(self) -> bool:
        """Whether what is said now would be heard."""
        return self.settings.modality == "audio" and self._context.playout.line.takes_sound

    def duck(self) -> None:
        """Make what is said quieter."""
        self._context.playout.level.duck()

    def hold(self) -> None:
        """Stop, ready to go on."""
        self._context.playout.level.hold()

    def resume(self) -> None:
        """Full level, from where it stopped: what there was did not interrupt the reply."""
        lowered = self._context.playout.resume()
        if self.reply:
            self.reply.record.ducked += lowered == "ducked"
            self.reply.record.held += lowered == "held"

    def stop(self, reason: str) -> None:
        """End what may be heard. A reply whose end is out, but not heard yet, is truncated to what was."""
        cancelled = False
        for reply in self._sounding():
            if reason == "turn_detected":
                cancelled |= reply.interrupt_tools()
            self._stop(reply, reason)
            self._conversation.emit_cut(reply.said)
        self._ending, self.reply = [], None
        if cancelled:
            self.discard()  # It does not know.

    def repair(self) -> None:
        """The reply was a cut-in: end it, and let the prompt go on as if it had not been said."""
        reply, ended = self._latest, self.reply is None
        if reply is None:
            return
        reply.record.reopened = True
        self._context.tool_runs.taken_back(reply.said.delivery.knows)
        self._take_back("turn_detected")
        self._conversation.repair(reply.said, ended=ended)

    def interrupt(self) -> None:
        """End what is said, or prepared, for something that is no voice."""
        self.discard()
        if self.reply:
            self.end("turn_detected")

    def end(self, reason: str) -> None:
        """The client ends the reply that may be heard."""
        self.stop(reason)
        self._listener.reply_ended()

    def silence_item(self, item_id: str) -> None:
        """End what may be heard, if it says this item: how much was heard is the client's to say."""
        if any(message.item.id == item_id for reply in self._sounding() for message in reply.said.spoken()):
            self._take_back("client_cancelled")
            self._listener.reply_ended()

    def freeze_prompt(self) -> None:
        """The conversation is about to change: replies that were just begun, or are prepared, answer it as it was. The
        words that a speculation answers are about to join it, and would be in its prompt twice."""
        for reply in filter(None, (self.reply, self._speculation)):
            _ = reply.order.prompt

    # Tasks.

    def _started(self, reply: Reply) -> Reply:
        reply.task = self._tasks.spawn(self._run(reply))
        return reply

    async def _run(self, reply: Reply) -> None:
        await reply.run()
        self._conversation.remember(reply.said)
        # Without sound of its own, too: it may stand behind one that has some.
        await self._context.playout.heard_out()
        if reply.own_call:
            self._listener.calls_own_tool(reply.own_call)
        if reply is self.reply:
            self.reply = None
            self._listener.reply_ended()
        elif reply in self._ending:
            self._ending.remove(reply)

    def _sounding(self) -> list[Reply]:
        """The replies that may be heard, oldest first."""
        return [*self._ending, self.reply] if self.reply else [*self._ending]

    def _take_back(self, reason: str) -> None:
        """End what may be heard, and emit nothing of how much was."""
        for reply in self._sounding():
            self._stop(reply, reason)
        self._ending, self.reply = [], None

    def _stop(self, reply: Reply, reason: str) -> None:
        if reply.own_call and reply.own_call.name == SEND_KEYS:
            self._context.own_tool_over(reply.own_call, f"Error: {KEYS_INTERRUPTED}", failed=True)
        reply.stop(reason)
        self._conversation.remember(reply.said)
        task, reply.task = reply.task, None
        if task:
            task.cancel()
