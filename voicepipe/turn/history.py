"""The conversation: what was said and, of the agent's words, what was really heard."""

from collections.abc import Iterable
from itertools import count

from voicepipe.errors import ItemExists, ItemMismatch, ItemUnknown
from voicepipe.turn.events import Item, Role
from voicepipe.turn.prompt import Message, ToolCall

KEEP = 0.5
"""Share of the limit that trimming leaves, so that the prompt's beginning then stands still for many turns."""


class History:
    """Items in order, each with its id."""

    def __init__(self, max_words: int = 3000) -> None:
        self.max_words = max_words
        self.items: list[Item] = []
        self._repaired: set[str] = set()
        self._hidden: set[str] = set()
        self._trimmed_before = 0

    def get(self, item_id: str) -> Item:
        """The item. Raises ItemUnknown."""
        return self.items[self._index(item_id)]

    def add(self, item: Item, after: str | None = None) -> str | None:
        """Insert `item` after the item `after` ("root": first; None: last). Returns the id before it.

        Raises ItemExists and ItemUnknown.
        """
        if any(known.id == item.id for known in self.items):
            raise ItemExists(f"The conversation already has an item with id {item.id!r}.")
        at = len(self.items) if after is None else 0 if after == "root" else self._index(after) + 1
        self.items.insert(at, item)
        self._trimmed_before += at < self._trimmed_before
        return self.items[at - 1].id if at else None

    def before(self, item_id: str) -> str:
        """What `add` takes as `after` for an item that is to stand before this one. Raises ItemUnknown."""
        at = self._index(item_id)
        return self.items[at - 1].id if at else "root"

    def delete(self, item_id: str) -> None:
        """Raises ItemUnknown."""
        at = self._index(item_id)
        del self.items[at]
        self._trimmed_before -= at < self._trimmed_before

    def hide(self, item_id: str) -> None:
        """Keep the item for the prompt and from the client: a tool that ran on the server."""
        self._hidden.add(item_id)

    def visible(self) -> list[Item]:
        """The conversation as the client knows it."""
        return [item for item in self.items if item.id not in self._hidden]

    def last_visible(self) -> str | None:
        return next((item.id for item in reversed(self.items) if item.id not in self._hidden), None)

    def heard(self, item_id: str, text: str, audio_ms: int) -> None:
        """Cut an assistant's item at what the caller heard. Raises ItemUnknown, ItemMismatch."""
        item = self.get(item_id)
        if item.kind != "message" or item.role != "assistant" or item.audio_ms is None:
            raise ItemMismatch(f"Item {item_id!r} is not an assistant message with audio.")
        item.text, item.audio_ms, item.status = text, audio_ms, "incomplete"

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
        """The prompt. The caller's items that nothing stands between are one message; trimmed to `max_words`."""
        messages = [Message("system", instructions)] if instructions else []
        for item in [*self._recent(), *extra]:
            if self._left_out(item):
                continue
            message = _message(item)
            if message.role == "user" and messages and messages[-1].role == "user":
                messages[-1] = Message("user", f"{messages[-1].text} {message.text}")
            else:
                messages.append(message)
        return tuple(messages)

    def _left_out(self, item: Item) -> bool:
        return item.id in self._repaired or (not item.text and item.kind == "message")

    def _recent(self) -> list[Item]:
        """The newest items that fit. The cut moves rarely and far, so a cached prefix lives on between two cuts."""
        words = [len(item.text.split()) + len(item.output.split()) + 4 for item in self.items]
        self._trimmed_before = min(self._trimmed_before, len(words))
        if sum(words[self._trimmed_before :]) > self.max_words:
            while self._trimmed_before < len(words) - 1 and sum(words[self._trimmed_before :]) > self.max_words * KEEP:
                self._trimmed_before += 1
        # Not between a tool's call and its result, which may come late: models refuse a result without its call.
        while self._trimmed_before < len(words) and self.items[self._trimmed_before].kind == "function_call_output":
            self._trimmed_before += 1
        return self.items[self._trimmed_before :]

    def _index(self, item_id: str) -> int:
        for index, item in enumerate(self.items):
            if item.id == item_id:
                return index
        raise ItemUnknown(f"The conversation has no item with id {item_id!r}.")


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
