"""What came into a conversation since the last reply was begun. Pure."""

from collections.abc import Iterable
from functools import reduce

from voicepipe.config.redaction_config import LONGEST
from voicepipe.turn.events import TOOL_CHARS, TOOL_NAME_CHARS, Item, ItemAdded, ToolUse
from voicepipe.words import joined


class Unanswered:
    """What came since the last reply was begun. A client can add and delete items for ever, so it is bounded."""

    def __init__(self) -> None:
        self._spoken: list[str] = []
        self._typed: list[str] = []
        self._typed_chars = 0
        self._results: list[ToolUse] = []
        self._called: dict[str, Item] = {}
        """The client's tools whose results are awaited, by the id of that."""

    def __bool__(self) -> bool:
        return bool(self._spoken or self._typed or self._results)

    def add(self, event: ItemAdded) -> None:
        """An item joined the conversation."""
        item = event.item
        if event.spoken:
            self._spoken.append(item.text)
        elif item.kind == "message" and item.role == "user" and self._typed_chars < LONGEST:
            self._typed.append(item.text)
            self._typed_chars += len(item.text) + 1
        elif item.kind == "function_call_output" and (called := self._called.pop(item.call_id, None)):
            arguments, result = called.arguments[:TOOL_CHARS], item.output[:TOOL_CHARS]
            self._results.append(ToolUse(called.name[:TOOL_NAME_CHARS], arguments=arguments, result=result))

    def called(self, items: Iterable[Item]) -> None:
        """A reply that is over may have asked for the client's tools; those of replies before are awaited no more."""
        if called := {item.call_id: item for item in items if item.kind == "function_call"}:
            self._called = called

    def take(self) -> tuple[str, bool, tuple[ToolUse, ...]]:
        """The words, whether some were spoken, and results of the client's tools; then none are left."""
        words = reduce(joined, [*self._spoken, *self._typed], "")
        taken = words, bool(self._spoken), tuple(self._results)
        self._spoken, self._typed, self._results, self._typed_chars = [], [], [], 0
        return taken
