"""The tool calls of one reply, put together from the fragments in which servers and parsers of the OpenAI kind stream
them: known by number, the id and the name once, the arguments in pieces, several calls in turn or interleaved.

Not all keep to that. Some number all calls 0, or the arguments of one otherwise than its head; some repeat the id or
the name in each fragment, or give each a new id; some send what is complete by now in place of what is new. So:

- a new id with a name begins a call. Not where the number has a call of that name whose arguments are not complete;
- without an id, another name begins a call, and the same name does once the arguments so far are complete;
- behind complete arguments, a new id begins a call whose name follows, and so does the same id with the same name,
  if arguments follow;
- empty arguments, {} or null, are a beginning only: what follows takes their place;
- every other fragment belongs to the call of its id, else to the latest of its number, else to the latest of all, or to
  the first that has no arguments if the latest has all of its own;
- what never got a name is no call.
"""

import json
import logging
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec

from voicepipe.base.errors import EngineError
from voicepipe.engines.base import ToolCall

log = logging.getLogger(__name__)
EMPTY = ("{}", "null")
"""Arguments that are none. Some servers begin each call with them."""
MOST_CALLS = 64
"""Calls in one reply."""
LONGEST = 1 << 16
"""Characters of all of a reply's calls: arguments, names and ids."""
MOST_READ = 1 << 22
"""Characters of arguments that are read in one reply to see whether they are complete: of each piece with a new id."""
OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
"""Raw, since nobody asks for the values: making them takes many times as long."""
HARMONY = re.compile(r"(?:functions\.)?([^<\s]*)(?:<\|.*|\s.*)?", re.DOTALL)
"""A name with what parsers of gpt-oss leave around it: "functions.book<|channel|>commentary"."""


@dataclass(slots=True)
class _FragmentedCall:
    """One tool call, as far as its fragments have come."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    closed: bool = False
    """The arguments end in what ends an object: they may be complete."""
    repeats: "_FragmentedCall | None" = None
    """An earlier call of the same id and name: without arguments of its own this is only its head once more."""

    @property
    def empty(self) -> bool:
        """Whether its arguments are {} or null."""
        return 0 < len(self.pieces) < 4 and "".join(self.pieces).strip() in EMPTY

    def more(self, arguments: str) -> None:
        end = arguments.rstrip()
        if end and self.empty:
            self.pieces.clear()
        if self.closed and self.pieces == [arguments]:
            return  # The whole call once more.
        self.pieces.append(arguments)
        if end:
            self.closed = end.endswith("}")

    @property
    def is_one(self) -> bool:
        """Whether it is a call of its own, and no repetition."""
        return self.repeats is None or (bool(self.pieces) and self.arguments() != self.repeats.arguments())

    def arguments(self) -> str:
        """All its arguments. Pieces that are no object together may each have been sent as a whole."""
        if self.empty:
            return "{}"
        joined, last = "".join(self.pieces), self.pieces[-1] if self.pieces else ""
        if len(self.pieces) < 2 or not last.rstrip().endswith("}") or _is_object(joined) or not _is_object(last):
            return joined
        before = self.pieces[:-1]
        repeated = "".join(before) == last or all(last.startswith(piece) for piece in before)
        return last if repeated else joined


class ToolCallFragments:
    """Puts the tool calls of one reply together from their fragments. `names`: the tools that the model was offered."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._calls: list[_FragmentedCall] = []
        self._of_id: dict[str, _FragmentedCall] = {}
        self._latest: dict[int, _FragmentedCall] = {}
        """The call of each number that began last."""
        self._length = 0
        self._read = 0

    def add(self, index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> None:
        """One fragment; what it does not tell is None or empty. Raises EngineError: no model calls so much."""
        call = self._known(index, call_id, name)
        if call is None or self._another(call, index, call_id, name, arguments):
            if not (call_id or name or arguments):
                return
            again = call is not None and bool(call_id) and call_id == call.id and not arguments
            before, call = call, self._begin(index)
            call.repeats = before if again else None
        elif index is not None:
            self._latest.setdefault(index, call)
        if call_id and not call.id:
            call.id = call_id
            self._of_id[call_id] = call
            self._length += len(call_id)
        if name and name != call.name and not (call.name and call.pieces):
            call.name = name if name.startswith(call.name) else call.name + name
            self._length += len(name)
        if arguments:
            call.more(arguments)
            self._length += len(arguments)
        if self._length > LONGEST:
            raise _endless()

    def __bool__(self) -> bool:
        """Whether tools are called."""
        return any(call.name.strip() for call in self._calls)

    def __iter__(self) -> Iterator[ToolCall]:
        """The calls as a whole, in the order in which they began. To be asked once the reply is over."""
        for call in filter(lambda each: each.is_one, self._calls):
            if name := self._plain(call.name):
                yield ToolCall(call.id or f"call_{uuid4().hex}", name, call.arguments() or "{}")
            else:
                log.warning("the language model's server sent a tool call without a name; it is left out")

    def _known(self, index: int | None, call_id: str | None, name: str | None) -> _FragmentedCall | None:
        """The call that a fragment may belong to."""
        numbered = None if index is None else self._latest.get(index)
        if call_id and (same := self._of_id.get(call_id)):
            # Some give all of a reply's calls one id, and number them.
            if numbered is not None and numbered.id == call_id:
                return numbered
            return same if numbered is not None or index is None or not name else None
        if numbered is not None or (index is not None and (call_id or name)):
            return numbered
        last = self._calls[-1] if self._calls else None
        if last and index is not None and last.closed and self._complete(last):
            return next((call for call in self._calls if not call.pieces), last)
        return last

    def _another(
        self, known: _FragmentedCall, index: int | None, call_id: str | None, name: str | None, arguments: str | None
    ) -> bool:
        """Whether a fragment that may belong to `known` begins a call of its own."""
        if not known.name or not (name or call_id):
            return False
        complete, same = known.closed and self._complete(known), bool(call_id) and call_id == known.id
        if not name:  # It may follow.
            return complete and bool(known.id) and not same and not (known.empty and arguments)
        if name != known.name:
            return complete if same else not self._goes_on(known, name)
        if call_id and known.id and not same:
            return complete or not known.pieces or index is None
        if same:  # The whole call again, or another one by a server that gives all of them one id.
            if not arguments:
                return complete
            return complete and not known.empty and _is_object(arguments) and arguments != known.arguments()
        return complete and bool(arguments)

    def _goes_on(self, known: _FragmentedCall, name: str) -> bool:
        """Whether `name` is a further piece of the name."""
        offered = [each for each in self._names if each.startswith(known.name + name)]
        return bool(offered) and not known.pieces and name not in self._names

    def _begin(self, index: int | None) -> _FragmentedCall:
        if len(self._calls) == MOST_CALLS:
            raise EngineError(f"The language model called more than {MOST_CALLS} tools in one reply: see its log.")
        call = _FragmentedCall()
        self._calls.append(call)
        if index is not None:
            self._latest[index] = call
        return call

    def _plain(self, name: str) -> str:
        if name in self._names:
            return name
        found = HARMONY.fullmatch(name.strip())
        return found[1] if found and found[1] in self._names else name.strip()

    def _complete(self, call: _FragmentedCall) -> bool:
        arguments = "".join(call.pieces)
        self._read += len(arguments)
        if self._read > MOST_READ:
            raise _endless()
        return _is_object(arguments)


def index_of(said: Any) -> int | None:
    """A call's number, as a server wrote it; None: that says none."""
    if isinstance(said, str) and said.isascii() and said.isdigit() and len(said) < 10:
        return int(said)
    if isinstance(said, float) and said.is_integer():
        return int(said)
    return said if isinstance(said, int) and not isinstance(said, bool) else None


def text_of(said: Any) -> str:
    """An id, a name or arguments, as a server wrote them: arguments may come as an object, or
    wrongly as a list, which the model is to be told."""
    if isinstance(said, str):
        return said
    if isinstance(said, dict | list):
        try:
            return json.dumps(said, ensure_ascii=False)
        except (ValueError, RecursionError):
            return ""
    return str(said) if isinstance(said, int) and not isinstance(said, bool) else ""


def _is_object(text: str) -> bool:
    try:
        OBJECT.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _endless() -> EngineError:
    return EngineError("The language model's calls of tools in one reply do not end: see its log.")
