"""The conversation: what was said and, of the agent's words, what was really heard.

Prompts are made of it over and over, so nothing here walks through the whole of it: items are found by their ids, sizes
are lengths of strings, and a prompt costs what the newest items cost that fit into it.
"""

from collections.abc import Iterable
from itertools import count

from voicepipe.errors import ItemExists, ItemMismatch, ItemUnknown
from voicepipe.turn.events import Item, Role
from voicepipe.turn.prompt import Message, ToolCall

MAX_CHARS = 18_000
"""Of the items in a prompt: 3,000 words of English."""
ITEM_CHARS = 24
"""What an item takes beside its text."""
KEEP = 0.5
"""Share of the limit that trimming leaves, so that the prompt's beginning then stands still for many turns."""


class History:
    """Items in order, each with its id. Those that the client makes cannot take the ids that `ids` gives."""

    def __init__(self, max_chars: int = MAX_CHARS, ids: "Ids | None" = None) -> None:
        self.items: list[Item] = []
        self._max_chars = max_chars
        self._ids = ids
        self._by_id: dict[str, Item] = {}
        self._repaired: set[str] = set()
        self._hidden: set[str] = set()
        self._deleted: set[str] = set()
        """Ids of ours that the client may use again: some mend an item by making it anew."""
        self._trimmed_before = 0
        self._counted: dict[str, int] = {}
        """Bytes of the items that are complete."""
        self._growing: list[Item] = []
        self._bytes = 0

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._by_id

    def get(self, item_id: str) -> Item:
        """The item. Raises ItemUnknown."""
        try:
            return self._by_id[item_id]
        except KeyError:
            raise ItemUnknown(f"The conversation has no item with id {item_id!r}.") from None

    def shown(self, item_id: str) -> Item:
        """The item, for a client: one that is hidden is unknown to it. Raises ItemUnknown."""
        if item_id in self._hidden:
            raise ItemUnknown(f"The conversation has no item with id {item_id!r}.")
        return self.get(item_id)

    def add(self, item: Item, after: str | None = None, *, hidden: bool = False) -> str | None:
        """Insert `item` after the item `after` ("root": first; None: last). Returns the id before it. `hidden`: it is
        kept for the prompt and from the client, since its tool ran on the server.

        Raises ItemExists and ItemUnknown.
        """
        if item.id in self._by_id:
            raise ItemExists(f"The conversation already has an item with id {item.id!r}.")
        at = len(self.items) if after is None else 0 if after == "root" else self._index(after) + 1
        self.items.insert(at, item)
        self._by_id[item.id] = item
        self._deleted.discard(item.id)
        if hidden:
            self._hidden.add(item.id)
        else:
            self._growing.append(item)
        self._trimmed_before += at < self._trimmed_before
        return self.items[at - 1].id if at else None

    def before(self, item_id: str) -> str:
        """What `add` takes as `after` for an item that is to stand before this one. Raises ItemUnknown."""
        at = self._index(item_id)
        return self.items[at - 1].id if at else "root"

    def check_id(self, item_id: str) -> None:
        """Raises ItemExists: this id is one that we give, to an item that may still be on its way."""
        if self._ids and self._ids.gives(item_id) and item_id not in self._deleted:
            raise ItemExists(f"Item ids like {item_id!r} are given by the server; leave the id out, or use another.")

    def delete(self, item_id: str) -> None:
        """Raises ItemUnknown."""
        item = self.get(item_id)
        at = self._index(item_id)
        del self.items[at], self._by_id[item_id]
        if item_id in self._hidden:
            self._hidden.discard(item_id)  # No client knew of it, and none may take its id.
        elif self._ids and self._ids.gives(item_id):
            self._deleted.add(item_id)
        self._bytes -= self._counted.pop(item_id, 0)
        self._growing = [other for other in self._growing if other is not item]
        self._trimmed_before -= at < self._trimmed_before

    @property
    def count(self) -> int:
        """Of the items that are not hidden."""
        return len(self.items) - len(self._hidden)

    @property
    def bytes(self) -> int:
        """What these take, in UTF-8."""
        growing = self._growing
        self._growing = [item for item in growing if item.status == "in_progress"]
        for item in growing:
            if item.status != "in_progress":
                self._counted[item.id] = item_bytes(item)
                self._bytes += self._counted[item.id]
        return self._bytes + sum(map(item_bytes, self._growing))

    def visible(self) -> list[Item]:
        """The conversation as the client knows it."""
        return [item for item in self.items if item.id not in self._hidden]

    def last_visible(self) -> str | None:
        return next((item.id for item in reversed(self.items) if item.id not in self._hidden), None)

    def heard(self, item_id: str, text: str, audio_ms: int) -> bool:
        """Cut an assistant's item at what the caller heard. Returns whether its words are others now. Raises
        ItemUnknown, ItemMismatch."""
        item = self.get(item_id)
        if item.kind != "message" or item.role != "assistant" or item.audio_ms is None:
            raise ItemMismatch(f"Item {item_id!r} is not an assistant message with audio.")
        before, item.text, item.audio_ms, item.status = item.text, text, audio_ms, "incomplete"
        return before != text

    def repair(self, item_id: str) -> None:
        """The assistant's item was a cut-in: the prompt goes on as if it had not been said."""
        self._repaired.add(item_id)

    def wordless(self) -> int:
        """The caller's turns without words, one after the other, since they or the client last said something."""
        count = 0
        for item in reversed(self.items):
            if item.kind == "message" and item.role == "user":
                if item.text:
                    break
                count += item.audio_ms is not None
        return count

    def unintelligible(self) -> bool:
        """The caller's last turn had no words, and nothing else in the conversation waits for an answer."""
        wordless = False
        for item in reversed(self.items):
            if not self._left_out(item):
                return wordless and item.role != "user"  # A tool's result is the user's too.
            wordless |= item.role == "user" and item.audio_ms is not None
        return wordless

    def messages(self, instructions: str, extra: Iterable[Item] = ()) -> tuple[Message, ...]:
        """The prompt. The caller's items that nothing stands between are one message; trimmed to `max_chars`."""
        messages = [Message("system", instructions)] if instructions else []
        said: list[str] = []
        for item in [*self._recent(), *extra]:
            if self._left_out(item):
                continue
            message = _message(item)
            if message.role == "user":
                said.append(message.text)
                continue
            _close(said, messages)
            messages.append(message)
        _close(said, messages)
        return tuple(messages)

    def _left_out(self, item: Item) -> bool:
        return item.id in self._repaired or (not item.text and item.kind == "message")

    def _recent(self) -> list[Item]:
        """The newest items that fit. The cut moves rarely and far, so a cached prefix lives on between two cuts."""
        items = self.items[self._trimmed_before :]
        chars = [_chars(item) for item in items]
        left, at = sum(chars), 0
        if left > self._max_chars:
            while at < len(items) - 1 and left > self._max_chars * KEEP:
                left -= chars[at]
                at += 1
        # Not between a tool's call and its result: models refuse a result without its call.
        while at < len(items) and items[at].kind == "function_call_output":
            at += 1
        self._trimmed_before += at
        if at:
            self._forget()
        return items[at:]

    def _forget(self) -> None:
        """What is hidden and in no prompt any more goes: no client could delete it. A call waits for its result."""
        past = self.items[: self._trimmed_before]
        answered = {item.call_id for item in past if item.kind == "function_call_output"}
        gone = {item.id for item in past if item.id in self._hidden and item.call_id in answered}
        past = [item for item in past if item.id not in gone]
        self.items[: self._trimmed_before], self._trimmed_before = past, len(past)
        self._hidden -= gone
        for item_id in gone:
            del self._by_id[item_id]

    def _index(self, item_id: str) -> int:
        item = self.get(item_id)
        # From the end: what clients name is mostly new.
        return next(at for at in range(len(self.items) - 1, -1, -1) if self.items[at] is item)


def item_bytes(item: Item) -> int:
    """What an item takes, in UTF-8."""
    return sum(utf8_bytes(part) for part in (item.text, item.output, item.name, item.arguments))


def utf8_bytes(text: str) -> int:
    """Also of what no UTF-8 has: half a surrogate pair."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _chars(item: Item) -> int:
    return ITEM_CHARS + len(item.text) + len(item.output) + len(item.name) + len(item.arguments)


def _close(said: list[str], messages: list[Message]) -> None:
    """What the caller said, piece by piece, is one message."""
    if said:
        messages.append(Message("user", " ".join(said)))
        said.clear()


def _message(item: Item) -> Message:
    if item.kind == "function_call":
        return Message("assistant", call=ToolCall(item.call_id, item.name, item.arguments))
    if item.kind == "function_call_output":
        return Message("tool", item.output, call_id=item.call_id)
    role: Role = item.role
    return Message(role, item.text)


def cut_at(words: Iterable[tuple[str, int]], heard: int) -> str:
    """The text whose words ended by sample `heard`; `words` are (text, end sample) in order, positions of the item."""
    return " ".join(text for text, end in words if end <= heard)


class Ids:
    """Identifiers of one call: readable, in order, unlike those of any other call."""

    def __init__(self, call: str) -> None:
        self._call = call
        self._count = count(1)

    def new(self, kind: str) -> str:
        """`item`, `resp`, `turn`: e.g. `item_Xk3_7`."""
        return f"{kind}_{self._call}_{next(self._count)}"

    def gives(self, item_id: str) -> bool:
        """Whether `new` gives, has given or will give such ids to items."""
        return item_id.startswith(f"item_{self._call}_")
