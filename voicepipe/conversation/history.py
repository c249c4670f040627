"""The conversation: what was said and, of the agent's words, what was really heard.

Prompts are made of it over and over, so nothing here walks through the whole of it: items are found by their ids, sizes
are lengths of strings, and a prompt costs what the newest items cost that fit into it.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import count, groupby, islice

from voicepipe.base.errors import ItemExists, ItemMismatch, ItemUnknown
from voicepipe.base.words import joined
from voicepipe.conversation.events import Item, Role
from voicepipe.conversation.prompt import Message, ToolCall

MAX_CHARS = 18_000
"""Characters of the items in a prompt, beside the newest: 3,000 words of English."""
ITEM_CHARS = 24
"""Characters that an item takes beside its text."""
LOOKED_BACK = 100
"""Items before the cut that are searched for the caller's words which a tool's results answer."""
KEEP = 0.5
"""Share of the limit that trimming leaves, so that the prompt's beginning then stands still for many turns."""


class History:
    """The items of one conversation, in order, and the prompts that are made of them. Items that the client makes
    cannot take the ids that `ids` gives."""

    def __init__(self, max_chars: int = MAX_CHARS, ids: "Ids | None" = None) -> None:
        self.items: list[Item] = []
        self._max_chars = max_chars
        self._ids = ids
        self._by_id: dict[str, Item] = {}
        self._calls: dict[str, Item] = {}
        """Tools' calls, by the ids that their results name."""
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
            raise _unknown(item_id) from None

    def shown(self, item_id: str) -> Item:
        """The item, for a client: one that is hidden is unknown to it. Raises ItemUnknown."""
        if item_id in self._hidden:
            raise _unknown(item_id)
        return self.get(item_id)

    def add(self, item: Item, after: str | None = None, *, hidden: bool = False) -> str | None:
        """Insert `item` after the item `after` ("root": first; None: last). Returns the id before it of those that are
        not hidden. `hidden`: it is kept for the prompt and from the client, since its tool ran on the server.

        Raises ItemExists and ItemUnknown, also if `after` is hidden and `item` is not.
        """
        if item.id in self._by_id:
            raise ItemExists(f"The conversation already has an item with id {item.id!r}.")
        if after in self._hidden and not hidden:
            raise _unknown(after)
        at = len(self.items) if after is None else 0 if after == "root" else self._index(after) + 1
        self.items.insert(at, item)
        self._by_id[item.id] = item
        if item.kind == "function_call":
            self._calls[item.call_id] = item
        self._deleted.discard(item.id)
        if hidden:
            self._hidden.add(item.id)
        else:
            self._growing.append(item)
        self._trimmed_before += at < self._trimmed_before
        return self._visible_before(at)

    def before(self, item_id: str) -> str:
        """The `after` that `add` takes for an item that is to be put before this one. Raises ItemUnknown."""
        at = self._index(item_id)
        return self.items[at - 1].id if at else "root"

    def check_theirs(self, item: Item) -> None:
        """Check an item that a client makes.

        Raises ItemExists: its id is one that we give, to an item that may still be on its way. Raises ItemMismatch: it
        would be the call or the result of a tool that runs on the server.
        """
        if item.call_id and item.call_id in {self._by_id[hidden].call_id for hidden in self._hidden}:
            raise ItemMismatch(f"The call {item.call_id!r} is the server's own: it writes its result itself.")
        item_id = item.id
        if self._ids and self._ids.gives(item_id) and item_id not in self._deleted:
            raise ItemExists(f"Item ids like {item_id!r} are given by the server; leave the id out, or use another.")

    def delete(self, item_id: str) -> None:
        """Raises ItemUnknown."""
        item = self.get(item_id)
        at = self._index(item_id)
        del self.items[at], self._by_id[item_id]
        self._forget_call(item)
        if item_id in self._hidden:
            self._hidden.discard(item_id)  # No client knew of it, and none may take its id.
        elif self._ids and self._ids.gives(item_id):
            self._deleted.add(item_id)
        self._bytes -= self._counted.pop(item_id, 0)
        self._growing = [other for other in self._growing if other is not item]
        self._trimmed_before -= at < self._trimmed_before

    @property
    def count(self) -> int:
        """Number of items that are not hidden."""
        return len(self.items) - len(self._hidden)

    @property
    def bytes(self) -> int:
        """Size of the items that are not hidden, in UTF-8."""
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
        return self._visible_before(len(self.items))

    def _visible_before(self, at: int) -> str | None:
        return next((self.items[n].id for n in range(at - 1, -1, -1) if self.items[n].id not in self._hidden), None)

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

    def begin_at_last_words(self) -> str | None:
        """Prompts begin with the caller's last words from now on: what stands before them is left out. Returns the id
        at which they began until now; None: at none that is there."""
        at = len(self.items)
        while at and (self._left_out(self.items[at - 1]) or not _is_users(self.items[at - 1])):
            at -= 1
        while at and (self._left_out(self.items[at - 1]) or _is_users(self.items[at - 1])):
            at -= 1
        before = self.items[self._trimmed_before].id if self._trimmed_before < len(self.items) else None
        self._trimmed_before = max(self._trimmed_before, at)
        return before

    def begin_at(self, item_id: str) -> None:
        """Prompts begin with this item again. Raises ItemUnknown."""
        self._trimmed_before = self._index(item_id)

    def wordless(self) -> int:
        """How many turns of the caller's had no words, one after the other, since they or the client last said
        something."""
        count = 0
        for item in reversed(self.items):
            if item.kind == "message" and item.role == "user":
                if item.text:
                    break
                count += item.audio_ms is not None
        return count

    def said_last(self) -> str:
        """The assistant's words since the caller's last, or the client's; "" while those wait for an answer."""
        said: list[str] = []
        for item in reversed(self.items):
            if item.kind == "message" and item.role != "assistant":
                break
            if item.kind == "message" and item.id not in self._repaired:
                said.append(item.text)
        return " ".join(reversed(said))

    def unintelligible(self) -> bool:
        """Whether the caller's last turn had no words, and nothing else in the conversation waits for an answer."""
        wordless = False
        for item in reversed(self.items):
            if not self._left_out(item):
                return wordless and item.role != "user"  # A tool's result is the user's too.
            wordless |= item.role == "user" and item.audio_ms is not None
        return wordless

    def messages(self, instructions: str, extra: Iterable[Item] = ()) -> tuple[Message, ...]:
        """The prompt. The caller's items that nothing stands between are one message; trimmed to `max_chars` beside the
        newest item."""
        messages = [Message("system", instructions)] if instructions else []
        made = (_message(item) for item in self._paired([*self._recent(), *extra]) if not self._left_out(item))
        for is_users, group in groupby(made, lambda message: message.role == "user"):
            if is_users:
                messages.append(Message("user", reduce(joined, (message.text for message in group))))
            else:
                messages += group
        return tuple(messages)

    def _left_out(self, item: Item) -> bool:
        if item.kind == "message":
            return item.id in self._repaired or not item.text
        # Models refuse a result without its call.
        return item.kind == "function_call_output" and item.call_id not in self._calls

    def _recent(self) -> list[Item]:
        """The newest items that fit. The cut moves rarely and far, so a cached prefix lives on between two cuts.

        The newest item stays, however long, and takes no room from those before it. Of results that nothing has
        followed yet as many stay as the limit allows: they are what the reply answers.
        """
        items = self.items[self._trimmed_before :]
        chars = self._chars(items)
        newest = next((at for at in range(len(items) - 1, -1, -1) if chars[at]), 0)
        left, at = sum(chars[:newest]), 0
        if left > self._max_chars:
            unanswered = newest
            while unanswered and items[newest].kind != "message" and items[unanswered - 1].kind != "message":
                unanswered -= 1
            while at < newest and left > self._max_chars * (KEEP if at < unanswered else 1):
                left -= chars[at]
                at += 1
        self._trimmed_before += at
        if at:
            self._forget()
        return [*self._asked(items[at:]), *items[at:]]

    def _asked(self, recent: list[Item]) -> list[Item]:
        """What the caller had said before results from which the cut parts it: tools alone answer nobody."""
        if not recent or recent[0].kind == "message" or any(map(_is_users, recent)):
            return []
        past = self.items[max(0, self._trimmed_before - LOOKED_BACK) : self._trimmed_before]
        said = (item for item in reversed(past) if _is_users(item) and not self._left_out(item))
        return [item for item in islice(said, 1) if _chars(item) <= self._max_chars]

    def _chars(self, items: Sequence[Item]) -> list[int]:
        """What each item takes in the prompt. A result takes what its call does, too: it brings it along."""
        chars: list[int] = []
        brought: set[str] = set()
        for item in reversed(items):
            call = self._calls.get(item.call_id) if item.kind != "message" else None
            if self._left_out(item) or (call is item and item.call_id in brought):
                chars.append(0)
            elif item.kind == "function_call_output" and call and item.call_id not in brought:
                brought.add(item.call_id)
                chars.append(_chars(item) + _chars(call))
            else:
                chars.append(_chars(item))
        return chars[::-1]

    def _paired(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items, each result behind its call, also where the call was trimmed."""
        called: set[str] = set()
        brought: set[str] = set()
        for item in items:
            if item.kind == "function_call_output" and item.call_id not in called and item.call_id in self._calls:
                call = self._calls[item.call_id]
                brought.add(call.id)
                called.add(call.call_id)
                yield call
            elif item.kind == "function_call":
                called.add(item.call_id)
            if item.id not in brought:
                yield item

    def _forget(self) -> None:
        """Forget hidden items that are in no prompt any more: no client could delete them. A call waits for its
        result."""
        past = self.items[: self._trimmed_before]
        hidden = [item for item in past if item.id in self._hidden]
        answered = {item.call_id for item in hidden if item.kind == "function_call_output"}
        gone = {item.id for item in hidden if item.call_id in answered}
        past = [item for item in past if item.id not in gone]
        self.items[: self._trimmed_before], self._trimmed_before = past, len(past)
        self._hidden -= gone
        for item_id in gone:
            self._forget_call(self._by_id.pop(item_id))

    def _forget_call(self, item: Item) -> None:
        if self._calls.get(item.call_id) is item:
            del self._calls[item.call_id]

    def _index(self, item_id: str) -> int:
        item = self.get(item_id)
        # From the end: what clients name is mostly new.
        return next(at for at in range(len(self.items) - 1, -1, -1) if self.items[at] is item)


def _is_users(item: Item) -> bool:
    return item.kind == "message" and item.role == "user"


def _unknown(item_id: str | None) -> ItemUnknown:
    return ItemUnknown(f"The conversation has no item with id {item_id!r}.")


def item_bytes(item: Item) -> int:
    """The size of an item, in UTF-8."""
    return sum(utf8_bytes(part) for part in (item.text, item.output, item.name, item.arguments))


def utf8_bytes(text: str) -> int:
    """The size of `text` in UTF-8; half a surrogate pair, which UTF-8 has not, counts too."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _chars(item: Item) -> int:
    return ITEM_CHARS + len(item.text) + len(item.output) + len(item.name) + len(item.arguments)


def _message(item: Item) -> Message:
    if item.kind == "function_call":
        return Message("assistant", call=ToolCall(item.call_id, item.name, item.arguments))
    if item.kind == "function_call_output":
        return Message("tool", item.output, call_id=item.call_id)
    role: Role = item.role
    return Message(role, item.text)


def cut_at(words: Iterable[tuple[str, int]], heard: int) -> str:
    """The text whose words ended by sample `heard`; `words` are (text with the space behind it, end sample) in order,
    positions of the item."""
    return "".join(text for text, end in words if end <= heard).strip()


class Ids:
    """Makes the identifiers of one call: readable, in order, unlike those of any other call."""

    def __init__(self, call: str) -> None:
        self._call = call
        self._count = count(1)

    def new(self, kind: str) -> str:
        """`item`, `resp`, `turn`: e.g. `item_Xk3_7`."""
        return f"{kind}_{self._call}_{next(self._count)}"

    def gives(self, item_id: str) -> bool:
        """Whether `new` gives, has given or will give such ids to items."""
        return item_id.startswith(f"item_{self._call}_")
