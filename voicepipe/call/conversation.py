"""Changes of one call's conversation, with their events."""

from dataclasses import dataclass

from voicepipe.audio import ms_to_samples, samples_to_ms
from voicepipe.base.errors import ItemMismatch
from voicepipe.call.call_context import CallContext
from voicepipe.call.reply_context import ResultDelivery
from voicepipe.call.reply_events import ReplyEvents
from voicepipe.conversation.events import Item, ItemAdded, ItemDeleted, ItemTruncated
from voicepipe.conversation.history import cut_at

REMEMBERED_REPLIES = 50
"""Spoken items whose word times are kept, for clients that truncate late."""


@dataclass(frozen=True, slots=True)
class SentItem:
    """An assistant's spoken item, with what of it went to the line: the word times that a later truncation needs."""

    words: tuple[tuple[str, int], ...]
    sent: int
    """Samples at the line's rate."""
    start: int
    """Sample of its reply at which it begins."""
    delivery: ResultDelivery


class Conversation:
    """Changes of one call's conversation, which are emitted as events.

    Make them through `Turns` or `Speaking`: they first have the reply that has just begun read its prompt.
    """

    def __init__(self, context: CallContext) -> None:
        self._history = context.history
        self._emit = context.emit
        self._tool_runs = context.tool_runs
        self._rate = context.out_rate
        self._spoken: dict[str, SentItem] = {}

    def last(self) -> Item | None:
        """The last item that clients see."""
        last = self._history.last_visible()
        return None if last is None else self._history.get(last)

    def add(self, item: Item, after: str | None) -> None:
        """Raises ItemExists, ItemUnknown."""
        self._emit(ItemAdded(item, self._history.add(item, after)))

    def add_turn(self, item: Item, languages: tuple[str, ...] | None) -> None:
        """Add the caller's turn; `languages` as in `ItemAdded`."""
        self._emit(ItemAdded(item, self._history.add(item), spoken=True, languages=languages))

    def delete(self, item_id: str) -> None:
        """Raises ItemUnknown."""
        self._history.delete(item_id)
        self._spoken.pop(item_id, None)
        self._emit(ItemDeleted(item_id))

    def spoken(self, item_id: str, audio_end_ms: int) -> SentItem:
        """How an item went to the line, at least `audio_end_ms` of it. Raises ItemMismatch: it has no audio, or
        less."""
        spoken = self._spoken.get(item_id)
        if spoken is None:
            raise ItemMismatch(f"Item {item_id!r} has no audio that could be truncated.")
        sent_ms = round(samples_to_ms(spoken.sent, self._rate))
        if audio_end_ms > sent_ms:
            raise ItemMismatch(f"Audio content of {sent_ms}ms is already shorter than {audio_end_ms}ms")
        return spoken

    def truncate(self, item_id: str, spoken: SentItem, audio_end_ms: int) -> bool:
        """The caller heard only so much of it. Returns whether the conversation has other words now."""
        heard = ms_to_samples(audio_end_ms, self._rate)
        if audio_end_ms < round(samples_to_ms(spoken.sent, self._rate)):
            # As after a cancel, the next reply tells the pending results.
            self._tool_runs.put_off(spoken.delivery.broke_off(spoken.start + heard))
        changed = self._history.heard(item_id, cut_at(spoken.words, heard), audio_end_ms)
        self._emit(ItemTruncated(item_id, audio_end_ms))
        return changed

    def emit_cut(self, said: ReplyEvents) -> None:
        """A reply was ended: emit how much the caller heard of an item that was announced as complete."""
        for item_id, heard_ms in said.truncated():
            self._emit_truncated(item_id, heard_ms)

    def repair(self, said: ReplyEvents, *, ended: bool) -> None:
        """A reply was a cut-in: for the prompt it was not said. `ended`: it was heard to its end."""
        for message in said.messages:
            self._history.repair(message.item.id)
        for message in () if ended else said.spoken():
            self._emit_truncated(message.item.id, message.item.audio_ms or 0)
        said.takes_back()

    def _emit_truncated(self, item_id: str, heard_ms: int) -> None:
        """Emit that an item, which is shortened already, was truncated."""
        # A reply beside the conversation has no item in it, and a client may have deleted the item meanwhile.
        if item_id in self._history:
            self._emit(ItemTruncated(item_id, heard_ms))

    def remember(self, said: ReplyEvents) -> None:
        """Keep how a reply's messages went to the line."""
        for message in said.spoken():
            sent = SentItem(tuple(message.words), message.sent, message.start, said.delivery)
            self._spoken.setdefault(message.item.id, sent)
        while len(self._spoken) > REMEMBERED_REPLIES:
            del self._spoken[next(iter(self._spoken))]
