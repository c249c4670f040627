"""ONE reply: prompt -> text (`reply_writer.py`) -> phrases -> speech (`reply_speech.py`) -> playout. One task, so
ending it is one cancel.

Until `commit` it works behind a closed gate: nothing leaves it, no tool runs. After `commit` `reply_events.py` tells
the outside what it says.
"""

import asyncio

from voicepipe.audio import samples_to_ms
from voicepipe.base.tasks import TaskGroup
from voicepipe.call.call_context import CallContext, ReplyOrder
from voicepipe.call.reply_context import HandedOver, ReplyContext
from voicepipe.call.reply_events import ReplyEvents
from voicepipe.call.reply_speech import ReplySpeech
from voicepipe.call.reply_writer import ReplyWriter
from voicepipe.call.speech import Phrase
from voicepipe.conversation.events import ReplyStatus
from voicepipe.conversation.prompt import ToolCall
from voicepipe.conversation.timing import TurnRecord


class Reply:
    """One reply of the agent's: made on *prepare*, confirmed by `commit`, and run by one task."""

    def __init__(self, context: CallContext, order: ReplyOrder, record: TurnRecord, key: str = "") -> None:
        self.id = context.ids.new("resp")
        self.order = order
        self.record = record
        self.key = key
        """The words that it answers, normalised. A speculation with the same key at commit is right."""
        self.task: asyncio.Future[None] | None = None
        self._reply_context = reply_context = ReplyContext(context, order, record)
        self.said = ReplyEvents(reply_context, self.id)
        self._reply_writer = ReplyWriter(reply_context)
        self._speech = ReplySpeech(reply_context, self._reply_writer)
        self._line_start: int | None = None
        """Sample of the line at which it begins."""
        self._playout, self._tool_runs, self._out_rate = context.playout, context.tool_runs, context.out_rate

    @property
    def over(self) -> bool:
        """Whether all of it went out; its last sound may still be playing."""
        return self._reply_context.over

    @property
    def own_call(self) -> ToolCall | None:
        """The call of a tool of ours that is carried out once the reply was heard: a transfer, keys or a goodbye."""
        return self._reply_writer.own_call

    @property
    def committed(self) -> bool:
        return self._reply_context.gate.is_set()

    @property
    def failed(self) -> bool:
        """Whether an engine failed: the fallback is said instead of the answer."""
        return bool(self._speech.failure)

    @property
    def mute(self) -> bool:
        """Whether it had no words, and nothing was said in their place."""
        return self._reply_writer.mute

    def commit(self) -> None:
        """The turn is confirmed: open the gate."""
        self._reply_context.stamp("commit")
        self.record.response_id = self.id
        self._reply_context.gate.set()
        self.said.begin()

    async def run(self) -> None:
        """Make and play the reply; returns when the line has all of it."""
        self._reply_context.stamp("prepare")
        async with TaskGroup() as tasks:
            making = tasks.create_task(self._speech.make())
            await self._reply_context.gate.wait()
            late_steps = tasks.create_task(self._speech.fill_silence(making))
            await self._play()
            late_steps.cancel()
        limit = self.order.settings.most_tokens
        if self._speech.failure:
            self.said.delivery.broke_off(self.said.sent)
            self._finish("failed", self._speech.failure)
        elif limit is not None and self._reply_writer.tokens >= limit:
            self._finish("incomplete", "max_output_tokens")
        else:
            self._finish("completed", "")

    async def _play(self) -> None:
        if self._reply_context.spoken:
            self._line_start = self._playout.begin(self)
        while (piece := await self._reply_context.pieces.get()) is not None:
            if isinstance(piece, HandedOver):
                await self._close_message()
                self.said.hands_over(piece)
                continue
            self._reply_context.late_reply.begun = True
            if isinstance(piece, ToolCall):
                await self._close_message()
                self.said.passes_on(piece)
            elif piece.withdrawn:
                continue
            elif self._reply_context.spoken:
                self.said.open()
                await self._playout.put(piece)
            else:
                self.said.writes(piece)
        await self._close_message()

    def speaks(self, phrase: Phrase, start: int) -> None:
        """As `PlayedReply`."""
        self.said.speaks(phrase, start)

    def audible(self) -> None:
        """As `PlayedReply`."""
        self._reply_context.stamp("audible")

    async def _close_message(self) -> None:
        if not self._reply_context.spoken:
            return self.said.close()
        if self.said.is_open:
            await self._playout.drained()
        self.said.close(self._playout.position)

    def stop(self, reason: str) -> None:
        """End it now, and all sound with it; the caller of this cancels the task.

        A reply that was never committed leaves no trace.
        """
        if not self.committed:
            self._reply_context.over = True
            return
        if self._reply_context.spoken and self._line_start is not None:
            sent = self.said.sent if self.over else self._playout.position
            self._playout.cut()
            self.said.cut(sent, min(sent, self._playout.heard(self._line_start)))
        elif not self.over:
            self.said.delivery.broke_off(self.said.sent)
        if reason == "client_cancelled":  # A client that wants silence gets the results with the next reply.
            self._tool_runs.put_off(self.said.delivery.knows)
        self.said.leave_open()
        self._finish("cancelled", reason)

    def _finish(self, status: ReplyStatus, reason: str) -> None:
        if not self.over:
            self._reply_context.over = True
            self.record.tokens, self.record.phrase_tokens = self._reply_writer.tokens, self._speech.phrase_tokens
            self.record.sound_ms = samples_to_ms(self._speech.sound, self._out_rate)
            self.record.voicing_ms = 1000 * self._speech.waited_s
            self.said.finish(status, reason, self._reply_writer.tokens, self._reply_writer.tools())
