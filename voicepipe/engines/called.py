"""The tool calls of one reply, put together from the fragments in which servers and parsers of the OpenAI kind stream
them: told apart by number, the id and the name once, the arguments in pieces, several calls in turn or interleaved.

Not all keep to that. Some number all calls 0; some give each fragment a new id, and the name again. So what is told by
number and id may be another call or the same one: it is another one where it is named and what is known is complete.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from uuid import uuid4

import msgspec

from voicepipe.engines.base import ToolCall
from voicepipe.errors import EngineError

MOST_CALLS = 64
"""In one reply."""
LONGEST = 1 << 16
"""Characters of all of a reply's calls: arguments, names and ids."""
MOST_READ = 1 << 22
"""Characters of arguments that are read in one reply to see whether they are complete: of each piece with a new id."""
OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
"""Raw, since nobody asks for the values: making them takes many times as long."""


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: StringIO = field(default_factory=StringIO)
    closed: bool = False
    """The arguments end in what ends an object: they may be complete."""

    def more(self, arguments: str) -> None:
        self.arguments.write(arguments)
        if end := arguments.rstrip():
            self.closed = end.endswith("}")


class Called:
    """Those of one reply."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._latest: dict[int, _Call] = {}
        """Of each number, the call that began last."""
        self._length = 0
        self._read = 0

    def add(self, index: int, call_id: str | None, name: str | None, arguments: str | None) -> None:
        """One fragment; what it does not tell is None or empty. Raises EngineError: no model calls so much."""
        call = self._latest.get(index)
        if call is None or self._another(call, call_id, name):
            if len(self._calls) == MOST_CALLS:
                raise EngineError(f"The language model called more than {MOST_CALLS} tools in one reply: see its log.")
            call = self._latest[index] = _Call()
            self._calls.append(call)
        if call_id and not call.id:
            call.id = call_id
            self._length += len(call_id)
        if name and not call.name:
            call.name = name
            self._length += len(name)
        if arguments:
            call.more(arguments)
            self._length += len(arguments)
        if self._length > LONGEST:
            raise _endless()

    def __iter__(self) -> Iterator[ToolCall]:
        """Whole, in the order in which they began: once the reply is over."""
        for call in self._calls:
            yield ToolCall(call.id or f"call_{uuid4().hex}", call.name, call.arguments.getvalue() or "{}")

    def _another(self, known: _Call, call_id: str | None, name: str | None) -> bool:
        if not (name and call_id and known.id) or call_id == known.id:
            return False
        return bool(known.name and name != known.name) or (known.closed and self._complete(known.arguments.getvalue()))

    def _complete(self, arguments: str) -> bool:
        self._read += len(arguments)
        if self._read > MOST_READ:
            raise _endless()
        try:
            OBJECT.decode(arguments)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        return True


def _endless() -> EngineError:
    return EngineError("The language model's calls of tools in one reply do not end: see its log.")
