"""Enters ONE reply's items in the conversation and emits its events, in the order of the wire's golden trace."""

from collections.abc import Sequence
from itertools import pairwise

from voicepipe.audio import samples_to_ms
from voicepipe.call.reply_context import ReplyContext
from voicepipe.call.speech import Phrase
from voicepipe.call.tool_runs import called
from voicepipe.conversation.events import (
    Item,
    ReplyDone,
    ReplyItemAdded,
    ReplyItemDone,
    ReplyStarted,
    ReplyStatus,
    ReplyText,
    ToolUse,
)
from voicepipe.conversation.history import cut_at
from voicepipe.conversation.phrases import ends_sentence
from voicepipe.conversation.prompt import ToolCall


class ReplyEvents:
    """Emits the events of one committed reply, keeps its items, and knows how much of them was heard. Samples are at
    the line's rate."""

    def __init__(self, reply_context: ReplyContext, reply_id: str) -> None:
        self.words: list[tuple[str, int]] = []
        """Words spoken, each with the space behind it, and the samples by which the caller has heard them."""
        self.sent = 0
        """Samples that went to the line."""
        self.heard_ms = 0
        """Milliseconds of the reply that the caller heard, once it was stopped."""
        self.message: str | None = None
        """Id of the message that was or is being said, or written."""
        self.delivery = reply_context.delivery
        self._reply_context, self._id = reply_context, reply_id
        self._context, self._order, self._record = reply_context.context, reply_context.order, reply_context.record
        self._unsure: list[tuple[str, int]] = []
        """The last word of a phrase that goes on: whether a sentence ends with it, the next one tells."""
        self._item: Item | None = None
        self._items: list[Item] = []

    @property
    def spoken_item(self) -> str | None:
        """Id of the message, if it is sound."""
        return self.message if self._reply_context.spoken else None

    @property
    def completed_item(self) -> str | None:
        """Id of the spoken message once it was announced as complete; its end may still be to play."""
        return self.spoken_item if self._item is None else None

    @property
    def is_open(self) -> bool:
        """Whether a message is being said, or written."""
        return self._item is not None

    @property
    def sent_ms(self) -> int:
        return self._ms(self.sent)

    def begin(self) -> None:
        """The turn is confirmed: emit ReplyStarted."""
        order, record = self._order, self._record.summary()
        modality = order.settings.modality
        self._context.emit(ReplyStarted(self._id, record.turn_id, modality, order.metadata, order.remembered, record))

    def open(self) -> None:
        """Begin a message, unless one is open."""
        if self._item is not None:
            return
        audio_ms = 0 if self._reply_context.spoken else None
        self._item = Item(self._context.ids.new("item"), role="assistant", status="in_progress", audio_ms=audio_ms)
        self.message = self._item.id
        self._join(self._item)

    def speaks(self, phrase: Phrase, start: int) -> None:
        """A phrase begins to be sent, at sample `start` of the reply."""
        words = [(word, start + end) for word, end in phrase.words]
        self.words += words
        if phrase.text:
            self._text(phrase)
        self._note_results(phrase, words)

    def writes(self, phrase: Phrase) -> None:
        """A phrase is written; for a reply that is text alone."""
        self._text(phrase)
        self._note_results(phrase, [(phrase.text, 0)])

    def close(self, sent: int = 0) -> None:
        """Complete the open message. `sent`: samples of the reply that went to the line, if it is sound."""
        if self._item is None:
            return
        if self._reply_context.spoken:
            self.sent = sent
            self._item.audio_ms = self.sent_ms
        self._item.status = "completed"
        self._done(self._item)
        self._item = None

    def passes_on(self, call: ToolCall) -> None:
        """Emit a tool call that the client is to run."""
        item = called(self._context.ids, call)
        self._join(item)
        self._done(item)

    def cut(self, sent: int, heard: int) -> None:
        """Only what was heard stays of the message, also if it was announced as complete while its end was still to
        play. `sent` samples of the reply went to the line; the caller heard `heard` of them and hears no more."""
        self.sent, self.heard_ms = sent, self._ms(heard)
        message = next((item for item in (self._item, *self._items) if item and item.id == self.spoken_item), None)
        if message is not None and (message is self._item or heard < sent):
            message.status = "incomplete"
            message.text, message.audio_ms = cut_at(self.words, heard), self.heard_ms
        if not self._reply_context.over or heard < sent:
            self.delivery.broke_off(heard)

    def leave_open(self) -> None:
        """End the open message as incomplete."""
        if self._item is not None:
            self._item.status = "incomplete"
            self._done(self._item)

    def finish(self, status: ReplyStatus, reason: str, tokens: int, tools: tuple[ToolUse, ...]) -> None:
        """Emit ReplyDone; nothing follows."""
        summary, words = self._record.summary(), self._order.words
        self._context.emit(ReplyDone(self._id, status, reason, tuple(self._items), words, tokens, summary, tools))

    def _join(self, item: Item) -> None:
        history = self._context.history
        previous = history.last_visible()
        if self._order.remembered:
            history.add(item)
            self._reply_context.message = self.message
        self._context.emit(ReplyItemAdded(self._id, item, previous))

    def _done(self, item: Item) -> None:
        self._context.emit(ReplyItemDone(self._id, item))
        self._items.append(item)

    def _text(self, phrase: Phrase) -> None:
        self.open()
        assert self._item is not None
        self._item.text += phrase.text
        self._record.answer = self._item.text
        self._context.emit(ReplyText(self._id, self._item.id, phrase.text))

    def _note_results(self, phrase: Phrase, words: Sequence[tuple[str, int]]) -> None:
        """Note which results the phrase tells. `words`: those of the phrase, and the samples by which they are
        heard."""
        if self._reply_context.gave_up:  # It asks the caller to say it again.
            self._context.tool_runs.put_off(self.delivery.knows)
        elif not phrase.stand_in:
            words = [*self._unsure, *words]
            self._unsure = words[-1:] if phrase.more else []
            followed = pairwise(words if phrase.more else [*words, ("", 0)])
            self.delivery.says(
                phrase.answer,
                [end for (word, end), (following, _) in followed if ends_sentence(word.rstrip(), following)],
            )

    def _ms(self, samples: int) -> int:
        return round(samples_to_ms(samples, self._context.speaker.out_rate))
