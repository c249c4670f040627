"""ONE reply: prompt -> text (`writer.py`) -> phrases -> speech (`voicing.py`) -> playout. One task, so ending it is one
cancel.

Until `commit` it works behind a closed gate: nothing leaves it, no tool runs. After `commit` `said.py` tells the
outside what it says.
"""

import asyncio
from collections.abc import Sequence

from voicepipe.audio import samples_to_ms
from voicepipe.base.tasks import TaskGroup
from voicepipe.call.draft import Draft
from voicepipe.call.errands import Errand
from voicepipe.call.said import Said
from voicepipe.call.speech import Phrase
from voicepipe.call.studio import Order, Studio
from voicepipe.call.voicing import Voicing
from voicepipe.call.writer import Writer
from voicepipe.conversation.events import ReplyStatus
from voicepipe.conversation.prompt import ToolCall
from voicepipe.conversation.timing import TurnRecord


class Reply:
    """Made on *prepare*, confirmed by `commit`, run by one task."""

    def __init__(self, studio: Studio, order: Order, record: TurnRecord, key: str = "") -> None:
        self.id = studio.ids.new("resp")
        self.order = order
        self.record = record
        self.key = key
        """The words that it answers, normalised: what makes a speculation still right at commit."""
        self.task: asyncio.Future[None] | None = None
        self._draft = draft = Draft(studio, order, record)
        self.said = Said(draft, self.id)
        self._writer = Writer(draft)
        self._voicing = Voicing(draft, self._writer)
        self._place: int | None = None
        """Where on the line it begins."""
        self._playout, self._errands, self._speaker = studio.playout, studio.errands, studio.speaker

    @property
    def over(self) -> bool:
        """All of it went out; its last sound may still be playing."""
        return self._draft.over

    @property
    def farewell(self) -> ToolCall | None:
        """The transfer or goodbye that follows once it was heard."""
        return self._writer.farewell

    @property
    def knows(self) -> Sequence[Errand]:
        """Tools whose results it answers."""
        return self.said.telling.knows

    @property
    def committed(self) -> bool:
        return self._draft.gate.is_set()

    @property
    def failed(self) -> bool:
        """An engine failed: what is said instead is the fallback."""
        return bool(self._voicing.failure)

    @property
    def mute(self) -> bool:
        """It had no words, and nothing was said in their place."""
        return self._writer.mute

    def commit(self) -> None:
        """The turn is confirmed: open the gate."""
        self._draft.stamp("commit")
        self.record.response_id = self.id
        self._draft.gate.set()
        self.said.begin()

    async def run(self) -> None:
        """Make and play the reply; returns when the line has all of it."""
        self._draft.stamp("prepare")
        async with TaskGroup() as tasks:
            making = tasks.create_task(self._voicing.make())
            await self._draft.gate.wait()
            ladder = tasks.create_task(self._voicing.climb(making))
            await self._play()
            ladder.cancel()
        limit = self.order.settings.max_tokens
        if self._voicing.failure:
            self.said.telling.broke_off(self.said.sent)
            self._finish("failed", self._voicing.failure)
        elif limit is not None and self._writer.tokens >= limit:
            self._finish("incomplete", "max_output_tokens")
        else:
            self._finish("completed", "")

    async def _play(self) -> None:
        if self._draft.spoken:
            self._place = self._playout.begin(self)
        while (piece := await self._draft.pieces.get()) is not None:
            self._draft.ladder.begun = True
            if isinstance(piece, ToolCall):
                await self._close_message()
                self.said.passes_on(piece)
            elif piece.withdrawn:
                continue
            elif self._draft.spoken:
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
        self._draft.stamp("audible")

    async def _close_message(self) -> None:
        if not self._draft.spoken:
            return self.said.close()
        if self.said.is_open:
            await self._playout.drained()
        self.said.close(self._playout.position)

    def stop(self, reason: str) -> None:
        """End it now, and all sound with it; the caller of this cancels the task.

        A reply that was never committed leaves no trace.
        """
        if not self.committed:
            self._draft.over = True
            return
        if self._draft.spoken and self._place is not None:
            sent = self.said.sent if self.over else self._playout.position
            self._playout.cut()
            self.said.cut(sent, min(sent, self._playout.heard(self._place)))
        elif not self.over:
            self.said.telling.broke_off(self.said.sent)
        if reason == "client_cancelled":  # Who wants silence is told with the next reply.
            self._errands.put_off(self.knows)
        self.said.leave_open()
        self._finish("cancelled", reason)

    def _finish(self, status: ReplyStatus, reason: str) -> None:
        if not self.over:
            self._draft.over = True
            self.record.tokens, self.record.phrase_tokens = self._writer.tokens, self._voicing.phrase_tokens
            self.record.sound_ms = samples_to_ms(self._voicing.sound, self._speaker.out_rate)
            self.record.voicing_ms = 1000 * self._voicing.waited_s
            self.said.finish(status, reason, self._writer.tokens, self._writer.tools())
