"""The tool calls of one reply, put together from the fragments in which servers and parsers of the OpenAI kind stream
them: told apart by number, the id and the name once, the arguments in pieces, several calls in turn or interleaved.

Not all keep to that. Some number all calls 0; some give each fragment a new id, and the name again. So what is told by
number and id may be another call or the same one: it is another one where it is named and what is known is complete.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import msgspec

from voicepipe.engines.base import ToolCall


@dataclass(slots=True)
class _Call:
    index: int
    id: str | None
    name: str
    arguments: str


class Called:
    """Those of one reply."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def add(self, index: int, call_id: str | None, name: str | None, arguments: str | None) -> None:
        """One fragment; what it does not tell is None or empty."""
        known = next((call for call in reversed(self._calls) if call.index == index), None)
        if known is None or _another(known, call_id, name):
            self._calls.append(_Call(index, call_id, name or "", arguments or ""))
            return
        known.id = known.id or call_id
        known.name = known.name or name or ""
        known.arguments += arguments or ""

    def __iter__(self) -> Iterator[ToolCall]:
        """Whole, in the order in which they began: once the reply is over."""
        for call in self._calls:
            yield ToolCall(call.id or f"call_{uuid4().hex}", call.name, call.arguments or "{}")


def _another(known: _Call, call_id: str | None, name: str | None) -> bool:
    if not (name and call_id and known.id) or call_id == known.id:
        return False
    return bool(known.name and name != known.name) or _complete(known.arguments)


def _complete(arguments: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(arguments), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
