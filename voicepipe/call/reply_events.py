"""Enters ONE reply's items in the conversation and emits its events, in the order of the wire's golden trace."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from voicepipe.audio import samples_to_ms
from voicepipe.base.errors import ItemUnknown
from voicepipe.call.reply_context import HandedOver, ReplyContext
from voicepipe.call.speech import Phrase
from voicepipe.call.tool_runs import called
from voicepipe.call_settings import CallSettings
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


@dataclass(slots=True)
class ReplyMessage:
    """A message of one reply. There is one, or one of each agent where the reply hands the caller over. Samples are at
    the line's rate."""

    item: Item
    start: int
    """Sample of the reply at which it begins."""
    words: list[tuple[str, int]] = field(default_factory=list)
    """Its spoken words, each with the space behind it, and the sample of the message by which the caller has heard
    it."""
    sent: int = 0
    """Samples of it that went to the line."""
    heard: int | None = None
    """Samples of it that the caller heard, once it was cut; None: nothing was cut."""


class ReplyEvents:
    """Emits the events of one committed reply, keeps its items, and knows how much of them was heard. Samples are at
    the line's rate."""

    def __init__(self, reply_context: ReplyContext, reply_id: str) -> None:
        self.messages: list[ReplyMessage] = []
        """The messages that were or are being said, or written."""
        self.sent = 0
        """Samples of the reply that went to the line."""
        self.handed_over: list[HandedOver] = []
        """The hand-overs of this reply, in order."""
        self.delivery = reply_context.delivery
        self._reply_context, self._id = reply_context, reply_id
        self._context, self._order, self._record = reply_context.context, reply_context.order, reply_context.record
        self._unsure: list[tuple[str, int]] = []
        """The last word of a phrase that goes on: whether a sentence ends with it, the next one tells."""
        self._open: ReplyMessage | None = None
        self._before: CallSettings | None = None
        """The call's settings before a hand-over of this reply's."""
        self._prompts_began_at: str | None = None
        """Id of the item with which prompts began before a hand-over of this reply's left some out."""
        self._items: list[Item] = []

    def spoken(self) -> Iterator[ReplyMessage]:
        """The messages, if they are sound."""
        yield from self.messages if self._reply_context.spoken else ()

    def truncated(self) -> Iterator[tuple[str, int]]:
        """The messages that were announced as complete and cut before their end was heard: id, and the milliseconds
        that were heard."""
        for message in self.spoken():
            if message is not self._open and message.heard is not None:
                yield message.item.id, self._ms(message.heard)

    @property
    def is_open(self) -> bool:
        """Whether a message is being said, or written."""
        return self._open is not None

    def begin(self) -> None:
        """The turn is confirmed: emit ReplyStarted."""
        order, record = self._order, self._record.summary()
        modality = order.settings.modality
        self._context.emit(ReplyStarted(self._id, record.turn_id, modality, order.metadata, order.remembered, record))

    def open(self) -> None:
        """Begin a message, unless one is open."""
        if self._open is not None:
            return
        audio_ms = 0 if self._reply_context.spoken else None
        item = Item(self._context.ids.new("item"), role="assistant", status="in_progress", audio_ms=audio_ms)
        self._open = ReplyMessage(item, self.sent)
        self.messages.append(self._open)
        self._join(item)

    def speaks(self, phrase: Phrase, start: int) -> None:
        """A phrase begins to be sent, at sample `start` of the reply."""
        if phrase.text:
            self._text(phrase)
        if self._open:
            self._open.words += [(word, start + end - self._open.start) for word, end in phrase.words]
        self._note_results(phrase, [(word, start + end) for word, end in phrase.words])

    def writes(self, phrase: Phrase) -> None:
        """A phrase is written; for a reply that is text alone."""
        self._text(phrase)
        self._note_results(phrase, [(phrase.text, 0)])

    def close(self, sent: int = 0) -> None:
        """Complete the open message. `sent`: samples of the reply that went to the line, if it is sound."""
        if (message := self._open) is None:
            return
        if self._reply_context.spoken:
            self.sent = sent
            message.sent = sent - message.start
            message.item.audio_ms = self._ms(message.sent)
        message.item.status = "completed"
        self._done(message.item)
        self._open = None

    def passes_on(self, call: ToolCall) -> None:
        """Emit a tool call that the client is to run."""
        item = called(self._context.ids, call)
        self._join(item)
        self._done(item)

    def hands_over(self, handed: HandedOver) -> None:
        """Another agent goes on with the reply: it has the call from now on."""
        self._context.used(handed.call, handed.result)
        if handed.keep != "all":
            began_at = self._context.history.begin_at_last_words()
            self._prompts_began_at = self._prompts_began_at or began_at
        before = self._context.hand_over(handed.settings)
        self._before = self._before or before
        self.handed_over.append(handed)
        handed.played.set()

    def takes_back(self) -> None:
        """The reply was a cut-in: whoever had the call before it has it again."""
        for handed in reversed(self.handed_over):
            self._context.unused(handed.call)
        if self._before:
            self._context.hand_over(self._before)
        self.handed_over.clear()
        if self._prompts_began_at:
            with suppress(ItemUnknown):  # A client has deleted it.
                self._context.history.begin_at(self._prompts_began_at)

    def cut(self, sent: int, heard: int) -> None:
        """Only what was heard stays of the messages, also of one that was announced as complete while its end was still
        to play. `sent` samples of the reply went to the line; the caller heard `heard` of them and hears no more."""
        self.sent = sent
        for message in self.spoken():
            if message is self._open:
                message.sent = sent - message.start
            its = max(0, heard - message.start)
            if message is self._open or its < message.sent:
                message.heard = min(its, message.sent)
                message.item.status = "incomplete"
                message.item.text = cut_at(message.words, message.heard)
                message.item.audio_ms = self._ms(message.heard)
        if not self._reply_context.over or heard < sent:
            self.delivery.broke_off(heard)

    def leave_open(self) -> None:
        """End the open message as incomplete."""
        if self._open is not None:
            self._open.item.status = "incomplete"
            self._done(self._open.item)

    def finish(self, status: ReplyStatus, reason: str, tokens: int, tools: tuple[ToolUse, ...]) -> None:
        """Emit ReplyDone; nothing follows."""
        summary, words = self._record.summary(), self._order.words
        self._context.emit(ReplyDone(self._id, status, reason, tuple(self._items), words, tokens, summary, tools))

    def _join(self, item: Item) -> None:
        history = self._context.history
        previous = history.last_visible()
        if self._order.remembered:
            history.add(item)
            self._reply_context.message = self.messages[-1].item.id if self.messages else None
        self._context.emit(ReplyItemAdded(self._id, item, previous))

    def _done(self, item: Item) -> None:
        self._context.emit(ReplyItemDone(self._id, item))
        self._items.append(item)

    def _text(self, phrase: Phrase) -> None:
        self.open()
        assert self._open is not None
        item = self._open.item
        item.text += phrase.text
        self._record.answer = " ".join(message.item.text for message in self.messages)
        self._context.emit(ReplyText(self._id, item.id, phrase.text))

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
        return round(samples_to_ms(samples, self._context.out_rate))
