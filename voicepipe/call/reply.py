"""ONE reply: prompt -> text (`writer.py`) -> phrases -> speech -> playout. One task, so ending it is one cancel.

Until `commit` it works behind a closed gate: nothing leaves it, no tool runs. After `commit` it tells the outside what
it does, in the order of the wire's golden trace.
"""

import asyncio
import logging
from collections.abc import Sequence

from voicepipe.audio import samples_to_ms
from voicepipe.call.errands import Errand, called
from voicepipe.call.ladder import Ladder
from voicepipe.call.speech import Phrase
from voicepipe.call.studio import Order, Studio
from voicepipe.call.telling import Telling
from voicepipe.call.voicing import Voicing
from voicepipe.call.writer import Writer
from voicepipe.tasks import TaskGroup
from voicepipe.turn.events import (
    Item,
    ReplyDone,
    ReplyItemAdded,
    ReplyItemDone,
    ReplyStarted,
    ReplyStatus,
    ReplyText,
)
from voicepipe.turn.history import cut_at
from voicepipe.turn.phrases import ends_sentence
from voicepipe.turn.prompt import ToolCall
from voicepipe.turn.timing import Hop, TurnRecord

log = logging.getLogger(__name__)
READY_PIECES = 3
"""Pieces that are made ahead of the gate or of playout's queue; a full queue holds up the model's stream."""


class Reply:
    """Made on *prepare*, confirmed by `commit`, run by one task."""

    def __init__(self, studio: Studio, order: Order, record: TurnRecord, key: str = "") -> None:
        self.id = studio.ids.new("resp")
        self.order = order
        self.record = record
        self.key = key
        """The words that it answers, normalised: what makes a speculation still right at commit."""
        self.task: asyncio.Future[None] | None = None
        self.words: list[tuple[str, int]] = []
        """Words spoken and the samples, at the line's rate, by which the caller has heard them."""
        self.sent = 0
        """Samples that went to the line."""
        self.heard_ms = 0
        """What the caller heard of it, once it was stopped."""
        self.message: str | None = None
        """Id of the message that was or is being said, or written."""
        self.telling = Telling(studio.errands)
        self._item: Item | None = None
        self._place: int | None = None
        """Where on the line it begins."""
        self._studio = studio
        self._gate = asyncio.Event()
        self._ladder = ladder = Ladder(studio.ladder, record, studio.clock)
        self._pieces: asyncio.Queue[Phrase | ToolCall | None] = asyncio.Queue(READY_PIECES)
        self._writer = Writer(studio, order, record, self.telling, ladder, self._gate, self._pieces)
        self._voicing = Voicing(studio, order, record, self.telling, ladder, self._writer, self._pieces)
        self._items: list[Item] = []

    @property
    def over(self) -> bool:
        """All of it went out; its last sound may still be playing."""
        return self._writer.over

    @property
    def transfer(self) -> ToolCall | None:
        """The caller is to be put through once it was heard."""
        return self._writer.transfer

    @property
    def hangs_up(self) -> bool:
        """The call is to be ended once it was heard."""
        return self._writer.hangs_up

    @property
    def knows(self) -> Sequence[Errand]:
        """Tools whose results it answers."""
        return self.telling.knows

    @property
    def committed(self) -> bool:
        return self._gate.is_set()

    @property
    def failed(self) -> bool:
        """An engine failed: what is said instead is the fallback."""
        return bool(self._voicing.failure)

    @property
    def spoken(self) -> bool:
        return self.order.settings.modality == "audio"

    @property
    def spoken_item(self) -> str | None:
        """Id of the message, if it is sound."""
        return self.message if self.spoken else None

    @property
    def told_item(self) -> str | None:
        """Id of the spoken message once it was told to be complete; its end may still be to play."""
        return self.spoken_item if self._item is None else None

    @property
    def sent_ms(self) -> int:
        return self._ms(self.sent)

    def commit(self) -> None:
        """The turn is confirmed: open the gate."""
        self._stamp("commit")
        self.record.response_id = self.id
        self._gate.set()
        order, record = self.order, self.record.summary()
        modality = order.settings.modality
        self._studio.emit(ReplyStarted(self.id, record.turn_id, modality, order.metadata, order.remembered, record))

    async def run(self) -> None:
        """Make and play the reply; returns when the line has all of it."""
        self._stamp("prepare")
        async with TaskGroup() as tasks:
            making = tasks.create_task(self._voicing.make())
            await self._gate.wait()
            ladder = tasks.create_task(self._voicing.climb(making))
            await self._play()
            ladder.cancel()
        limit = self.order.settings.max_tokens
        if self._voicing.failure:
            self.telling.broke_off(self.sent)
            self._finish("failed", self._voicing.failure)
        elif limit is not None and self._writer.tokens >= limit:
            self._finish("incomplete", "max_output_tokens")
        else:
            self._finish("completed", "")

    def stop(self, reason: str) -> None:
        """End it now, and all sound with it; the caller of this cancels the task.

        A reply that was never committed leaves no trace.
        """
        if not self.committed:
            self._writer.over = True
            return
        if self.spoken and self._place is not None:
            playout = self._studio.playout
            if not self.over:
                self.sent = playout.position
            playout.cut()
            heard = min(self.sent, playout.heard(self._place))
            self.heard_ms = self._ms(heard)
            self._cut_message(heard)
            if not self.over or heard < self.sent:
                self.telling.broke_off(heard)
        elif not self.over:
            self.telling.broke_off(self.sent)
        if reason == "client_cancelled":  # Who wants silence is told with the next reply.
            self._studio.errands.put_off(self.knows)
        if self._item is not None:
            self._item.status = "incomplete"
            self._studio.emit(ReplyItemDone(self.id, self._item))
            self._items.append(self._item)
        self._finish("cancelled", reason)

    def _cut_message(self, heard: int) -> None:
        """Only what was heard stays; also of a message that was told to be complete while its end was still to play."""
        message = next((item for item in (self._item, *self._items) if item and item.id == self.spoken_item), None)
        if message is not None and (message is self._item or heard < self.sent):
            message.status = "incomplete"
            message.text, message.audio_ms = cut_at(self.words, heard), self._ms(heard)

    def _ms(self, samples: int) -> int:
        return round(samples_to_ms(samples, self._studio.speaker.out_rate))

    # Playing: behind the gate.

    async def _play(self) -> None:
        playout = self._studio.playout
        if self.spoken:
            self._place = playout.begin(self._phrase_begins, self._audible)
        while (piece := await self._pieces.get()) is not None:
            self._ladder.begun = True
            if isinstance(piece, ToolCall):
                await self._close_message()
                self._pass_on(piece)
            elif self.spoken:
                self._open_message()
                await playout.put(piece)
            else:
                self._text_begins(piece)
                self._tells(piece, [(piece.text.rstrip(), 0)])
        await self._close_message()

    def _open_message(self) -> None:
        if self._item is not None:
            return
        audio_ms = 0 if self.spoken else None
        self._item = Item(self._studio.ids.new("item"), role="assistant", status="in_progress", audio_ms=audio_ms)
        self.message = self._item.id
        self._join(self._item)

    def _join(self, item: Item) -> None:
        history = self._studio.history
        previous = history.last_visible()
        if self.order.remembered:
            history.add(item)
            self._writer.message = self.message
        self._studio.emit(ReplyItemAdded(self.id, item, previous))

    def _text_begins(self, phrase: Phrase) -> None:
        self._open_message()
        assert self._item is not None
        self._item.text += phrase.text
        self.record.answer = self._item.text
        self._studio.emit(ReplyText(self.id, self._item.id, phrase.text))

    def _phrase_begins(self, phrase: Phrase, start: int) -> None:
        words = [(word, start + end) for word, end in phrase.words]
        self.words += words
        if phrase.text:
            self._text_begins(phrase)
        self._tells(phrase, words)

    def _tells(self, phrase: Phrase, words: Sequence[tuple[str, int]]) -> None:
        """`words`: its own, and the samples by which they are heard."""
        if self._writer.gave_up:  # It asks the caller to say it again.
            self._studio.errands.put_off(self.knows)
        elif not phrase.stand_in:
            followed = zip(words, [*words[1:], ("", 0)], strict=True)
            self.telling.says(
                phrase.answer, [end for (word, end), (following, _) in followed if ends_sentence(word, following)]
            )

    def _audible(self) -> None:
        self._stamp("audible")

    async def _close_message(self) -> None:
        if self._item is None:
            return
        if self.spoken:
            await self._studio.playout.drained()
            self.sent = self._studio.playout.position
            self._item.audio_ms = self.sent_ms
        self._item.status = "completed"
        self._studio.emit(ReplyItemDone(self.id, self._item))
        self._items.append(self._item)
        self._item = None

    def _pass_on(self, call: ToolCall) -> None:
        item = called(self._studio.ids, call)
        self._join(item)
        self._studio.emit(ReplyItemDone(self.id, item))
        self._items.append(item)

    def _finish(self, status: ReplyStatus, reason: str) -> None:
        if self.over:
            return
        self._writer.over = True
        self._studio.emit(
            ReplyDone(
                self.id,
                status,
                reason,
                tuple(self._items),
                self.order.words,
                self._writer.tokens,
                self.record.summary(),
                self._writer.tools(),
            )
        )

    def _stamp(self, hop: Hop) -> None:
        if not self.over:  # A task that is cancelled may run on for a moment; the record is another reply's by then.
            self.record.stamp(hop, self._studio.clock())
