"""The tools that one call has begun. Each is finished beside the reply that asked for it, exactly once, and the
conversation says so, whatever has become of that reply.

Until the caller has been told what came of it, the same wish (the tool and its arguments) is the same errand: a model
that asks again, since its reply was cut or the turn goes on, gets what is under way or has come already. A wish of
which nobody knows whether it was done may be tried again, as a repeat of the first request.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from voicepipe.agent import Tool
from voicepipe.base.errors import ItemUnknown, OutcomeUnknown, ToolError
from voicepipe.conversation.events import Item
from voicepipe.conversation.history import History, Ids
from voicepipe.conversation.prompt import Prompt, ToolCall
from voicepipe.redaction.redactor import logged
from voicepipe.tools.python_tools import within

log = logging.getLogger(__name__)
MOST = 16
"""Tools of one call that run at a time."""
REMEMBERED = 64
"""Errands of one call that are kept, and wishes of which nobody knows. No tool is begun while a reply is owed for as
many errands."""
UNKNOWN = "; nobody knows whether an earlier try was done"


class BeginTool(Protocol):
    def __call__(self, tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str) -> "asyncio.Task[str]":
        """Run it, whatever becomes of who asked; the result is text for the model. The task may fail with ToolError.
        `key`: what this use of the tool is known by to a server that is asked twice. The same key comes with the same
        `call` and `about`."""


@dataclass(eq=False, slots=True)
class Wish:
    """What is asked of a tool, from the first try until it is known what came of every try."""

    text: str
    key: str
    call: ToolCall
    about: Mapping[str, Any]
    """As in the first try: a server may refuse a key that comes with another request."""
    lost: bool = False
    """A try is over, and we shall not learn whether it was done."""
    later: "asyncio.Future[Callable[[], str]] | None" = None
    """A try took longer than its time limit and is not over: where its outcome will be known."""

    @property
    def unknown(self) -> bool:
        """Nobody knows what came of an earlier try."""
        return self.lost or self.later is not None

    def over(self) -> None:
        """A try may be over that took longer than its time limit."""
        if self.later and self.later.done():
            self.lost |= self.later.cancelled()
            self.later = None


@dataclass(eq=False, slots=True)
class Errand:
    """A tool that was begun: one try of a wish."""

    tool: Tool
    call: ToolCall
    wish: Wish
    item: Item | None
    """Its call in the conversation; None: only replies beside the conversation have asked for it."""
    result: Item | None = None
    """What came of it, in the conversation."""
    output: str | None = None
    """What came of it, as the model reads it; None: it runs."""
    failed: bool = False
    due: bool = True
    """The caller has not been told what came of it. Beside the conversation: no reply has read it."""
    put_off: bool = False
    """No reply is begun for that alone: there was one, since a model that fails must not be asked for ever, or the next
    one that is asked for tells of it."""
    waiting: int = 0
    """Replies that wait for it."""
    bridged: int = 0
    """Texts that the caller heard while it ran."""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def spare(self) -> bool:
        """It is over for good, and no reply is owed for it."""
        return self.output is not None and not self.wish.later and (self.put_off or not self.due)

    @property
    def bridge(self) -> str:
        """What the caller hears next while it runs; "" for nothing."""
        texts = self.tool.while_running
        return texts[min(self.bridged, len(texts) - 1)] if texts and self.output is None else ""

    async def wait(self) -> None:
        """Until it is over. To be cancelled here does nothing to the errand."""
        self.waiting += 1
        try:
            await self.over.wait()
            if not self.item:
                self.due = False
        finally:
            self.waiting -= 1


class ErrandEvents(Protocol):
    """Who is told of errands."""

    def tool_over(self) -> None:
        """One is over, and the conversation has its result."""


class Errands:
    """One call's. They outlive it: `leave` when it has ended."""

    def __init__(self, history: History, ids: Ids, begin: BeginTool, told: ErrandEvents | None = None) -> None:
        self._told = told
        self._history = history
        self._ids = ids
        self._begin = begin
        self._errands: list[Errand] = []
        self._wishes: dict[str, Wish] = {}
        """By their texts: those that are tried now, and those of which nobody knows."""
        self._left = False

    def begin(
        self, tool: Tool, call: ToolCall, about: Mapping[str, Any], *, remembered: bool, before: str | None = None
    ) -> Errand:
        """Begin it, or join the one that is under way for the same wish. `before`: the message that its call stands
        before, that of the reply which asks. Raises ToolError: the call has too many under way."""
        text = _text(tool, call)
        if wish := self._wishes.get(text):
            self._came_late(wish)  # In this step of the loop: nobody was told yet.
        if same := self._same(text):
            if remembered and not same.item:
                self._adopt(same, before)
            return same
        if sum(errand.output is None for errand in self._errands) >= MOST:
            raise ToolError("too many tools of this call are still running")
        if sum(not errand.spare for errand in self._errands) >= REMEMBERED:
            raise ToolError("the caller has not been told yet what came of many other tools; tell them that first")
        wish = self._wishes.pop(text, None) or Wish(text, self._ids.new("use"), call, about)
        self._wishes[text] = wish
        item = self._enter(call, before) if remembered else None
        errand = Errand(tool, call, wish, item, put_off=not remembered)
        self._errands.append(errand)
        self._try(tool, wish).add_done_callback(partial(self._finished, errand))
        return errand

    def call_ids(self) -> set[str]:
        """Those of the calls that are remembered, also of those beside the conversation."""
        return {errand.call.call_id for errand in self._errands}

    def running(self) -> list[Errand]:
        """Those of the conversation that are not over."""
        return [errand for errand in self._errands if errand.item and errand.output is None]

    def untold(self) -> list[Errand]:
        """Those of the conversation that are over and that the caller has not been told of."""
        return [errand for errand in self._errands if errand.item and errand.output is not None and errand.due]

    def owed(self) -> list[Errand]:
        """Those of them for which no reply has been begun yet."""
        return [errand for errand in self.untold() if not errand.put_off]

    def known(self, prompt: Prompt) -> list[Errand]:
        """The untold ones whose results a model reads in this prompt."""
        read = {(message.call_id, message.text) for message in prompt.messages if message.role == "tool"}
        return [errand for errand in self.untold() if (errand.call.call_id, errand.output) in read]

    def bring_up(self, errands: Sequence[Errand]) -> None:
        """A reply is begun for that alone: they stand at the conversation's end, where it looks for what to answer."""
        last = self._history.items[-1] if self._history.items else None
        for errand in errands:
            if errand.item and last not in [other.result for other in errands]:
                self._record(errand, errand.item, errand.output or "")

    def told(self, errands: Iterable[Errand]) -> None:
        """A reply that knows what came of them begins to be heard."""
        for errand in errands:
            errand.due = False

    def put_off(self, errands: Iterable[Errand]) -> None:
        """They are told with the next reply that the caller or the client asks for, and begin none."""
        for errand in errands:
            errand.put_off = True

    def taken_back(self, errands: Iterable[Errand]) -> None:
        """The reply that told of them was a cut-in, or was cut before the caller can have understood it."""
        for errand in errands:
            errand.due = True

    def leave(self) -> None:
        """The call has ended; what runs is finished all the same."""
        if self._left:
            return
        self._left, self._told = True, None
        for errand in self._errands:
            if errand.due and not errand.item and errand.output is not None:
                _warn("no reply has read what came of a tool", errand)

    def _try(self, tool: Tool, wish: Wish) -> "asyncio.Task[str]":
        """An earlier try that is not over is waited for, and not begun again."""
        if not wish.later:
            return self._begin(tool, wish.call, wish.about, wish.key)
        ends = asyncio.get_running_loop().time() + tool.timeout_ms / 1000
        return asyncio.create_task(within(tool, ends, wish.later))

    def _same(self, text: str) -> Errand | None:
        for errand in reversed(self._errands):
            if errand.wish.text == text and (errand.output is None or (errand.due and not errand.failed)):
                return errand
        return None

    def _enter(self, call: ToolCall, before: str | None) -> Item:
        item = called(self._ids, call)
        try:
            self._history.add(item, self._history.before(before) if before else None, hidden=True)
        except ItemUnknown:  # A client has deleted the message.
            self._history.add(item, hidden=True)
        return item

    def _adopt(self, errand: Errand, before: str | None) -> None:
        """Only replies beside the conversation have asked for it; now the conversation does."""
        errand.item, errand.put_off = self._enter(errand.call, before), False
        if errand.output is not None:
            self._answer(errand, errand.item, errand.output)

    def _finished(self, errand: Errand, task: "asyncio.Task[str]") -> None:
        self._take(errand, task.result)
        errand.over.set()
        self._tell(errand)
        self._came_late(errand.wish)

    def _came_late(self, wish: Wish) -> None:
        """If a try is over that took longer than its time limit. The model and perhaps the caller have been told that
        nobody knows; to replies the outcome is another errand."""
        later = wish.later
        if not later or not later.done():
            return
        tries = [errand for errand in self._errands if errand.wish is wish]
        errand = next((errand for errand in reversed(tries) if errand.item), tries[-1])
        if errand.output is None:  # A repeat, which waits for the same.
            return
        wish.over()
        if later.cancelled():  # It was stopped half-way.
            return
        known = replace(errand, due=True, put_off=not errand.item)
        self._errands = [other for other in self._errands if other is not errand] + [known]
        self._take(known, later.result())
        self._tell(known)
        if not known.item and not self._left:
            _warn("a tool is over that no reply waits for", known)

    def _take(self, errand: Errand, outcome: Callable[[], str]) -> None:
        """Put down what came of it."""
        wish, errand.failed = errand.wish, True
        try:
            errand.output, errand.failed = outcome(), False
        except OutcomeUnknown as error:
            errand.output = f"Error: {error}"
            self._unknown(wish, error.later)
        except ToolError as error:
            wish.over()  # It was a repeat, perhaps, which waited for the same.
            # The answer to a repeat says nothing of the try before it: its server is down now, still works on it (409),
            # or finds in the way what that try has booked.
            errand.output = f"Error: {error}{UNKNOWN if wish.unknown else ''}"
        except asyncio.CancelledError:
            errand.output = "Error: it was stopped before it was done"
            self._unknown(wish)
        except Exception:
            log.exception("the tool %s failed", errand.tool.name)
            errand.output = f"Error: {errand.tool.name} failed"
            self._unknown(wish)
        if not errand.failed or not wish.unknown:
            wish.later = None
            if self._wishes.get(wish.text) is wish:
                del self._wishes[wish.text]
        if errand.item:
            self._record(errand, errand.item, errand.output)

    def _unknown(self, wish: Wish, later: "asyncio.Future[Callable[[], str]] | None" = None) -> None:
        """Nobody knows what came of a try. `later`: where that will yet be known."""
        if later is None:
            wish.lost = True
        elif later is not wish.later:
            wish.later = later
            later.add_done_callback(lambda _: self._came_late(wish))

    def _tell(self, errand: Errand) -> None:
        self._forget()
        if self._left:
            _warn("a tool of a call that has ended is over", errand)
        if self._told:
            self._told.tool_over()

    def _record(self, errand: Errand, item: Item, result: str) -> None:
        """The result stands behind its call. Where the conversation has gone on without it both stand at its end, where
        the model looks for what it has to answer. No client can have deleted them, but they may have left the prompt
        and gone."""
        history, before = self._history, errand.result
        if before or (not errand.waiting and history.items[-1] is not item):
            for old in (item, before):
                if old and old.id in history:
                    history.delete(old.id)
            history.add(item, hidden=True)
        self._answer(errand, item, result)

    def _answer(self, errand: Errand, item: Item, result: str) -> None:
        """The result is put behind its call."""
        output = Item(self._ids.new("item"), "function_call_output", call_id=errand.call.call_id, output=result)
        self._history.add(output, item.id, hidden=True)
        errand.result = output

    def _forget(self) -> None:
        """The oldest go, first of those that the caller was told of."""
        spare = sorted((errand for errand in self._errands if errand.spare), key=lambda errand: errand.due)
        for errand in spare[: max(0, len(self._errands) - REMEMBERED)]:
            self._errands.remove(errand)
        lost = [text for text, wish in self._wishes.items() if wish.lost and not wish.later]
        for text in lost[: max(0, len(self._wishes) - REMEMBERED)]:
            del self._wishes[text]


def talkative(errands: Iterable[Errand]) -> Errand | None:
    """The first of those that still run which has something to say."""
    return next((errand for errand in errands if errand.bridge), None)


def bridged(errands: Iterable[Errand]) -> None:
    """The caller hears a text while these run."""
    for errand in errands:
        errand.bridged += errand.output is None


def called(ids: Ids, call: ToolCall) -> Item:
    """The model's call of a tool, as an item."""
    return Item(
        ids.new("item"), "function_call", "assistant",
        call_id=call.call_id, name=call.name, arguments=call.arguments,
    )  # fmt: skip


def _warn(what: str, errand: Errand) -> None:
    log.warning("%s: %s: %r", what, errand.tool.name, logged(str(errand.output))[:200])


def _text(tool: Tool, call: ToolCall) -> str:
    """The tool and its arguments, however the model spelt them."""
    try:
        arguments = json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        arguments = call.arguments
    return f"{tool.name} {arguments}"
