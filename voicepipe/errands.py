"""The tools that one call has begun. Each is finished beside the reply that asked for it, exactly once, and the
conversation says so, whatever has become of that reply.

Until the caller has been told what came of it, the same wish (the tool and its arguments) is the same errand: a model
that asks again, since its reply was cut or the turn goes on, gets what is under way or has come already.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from voicepipe.agent import Tool
from voicepipe.errors import ItemUnknown, OutcomeUnknown, ToolError
from voicepipe.turn.events import Item
from voicepipe.turn.history import History, Ids
from voicepipe.turn.prompt import Prompt, ToolCall

log = logging.getLogger(__name__)
MOST = 16
"""Tools of one call that run at a time."""
REMEMBERED = 64
"""Errands of one call that are kept, and keys that a repeat uses again. No tool is begun while a reply is owed for as
many errands."""


class BeginTool(Protocol):
    def __call__(self, tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str) -> "asyncio.Task[str]":
        """Run it, whatever becomes of who asked; the result is text for the model. The task may fail with ToolError.
        `key`: what this use of the tool is known by to a server that is asked twice."""


@dataclass(eq=False, slots=True)
class Errand:
    """A tool that was begun."""

    tool: Tool
    call: ToolCall
    wish: str
    key: str
    item: Item | None
    """Its call in the conversation; None: only replies beside the conversation have asked for it."""
    result: Item | None = None
    """What came of it, in the conversation."""
    output: str | None = None
    """What came of it, as the model reads it; None: it runs."""
    failed: bool = False
    later: "asyncio.Future[Callable[[], str]] | None" = None
    """It took longer than its time limit and is not over: where its outcome will be known."""
    due: bool = True
    """The caller has not been told what came of it."""
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
        return self.output is not None and not self.later and (self.put_off or not self.due)

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
        finally:
            self.waiting -= 1


class Errands:
    """One call's. They outlive it: `leave` when it has ended."""

    def __init__(self, history: History, ids: Ids, begin: BeginTool) -> None:
        self.on_over: Callable[[], None] = _nobody
        """Called when an errand is over and the conversation has its result."""
        self._history = history
        self._ids = ids
        self._begin = begin
        self._errands: list[Errand] = []
        self._keys: dict[str, str] = {}
        """Wish -> the key of the last use whose outcome nobody knows."""
        self._left = False

    def begin(
        self, tool: Tool, call: ToolCall, about: Mapping[str, Any], *, remembered: bool, before: str | None = None
    ) -> Errand:
        """Begin it, or join the one that is under way for the same wish. `before`: the message that its call stands
        before, that of the reply which asks. Raises ToolError: the call has too many under way."""
        wish = _wish(tool, call)
        for errand in list(self._errands):
            if errand.later and errand.later.done():  # In this step of the loop: nobody was told yet.
                self._came_late(errand)
        if same := self._same(wish):
            if remembered and not same.item:
                same.item = self._enter(same.call, before)
            return same
        if sum(errand.output is None for errand in self._errands) >= MOST:
            raise ToolError("too many tools of this call are still running")
        if sum(not errand.spare for errand in self._errands) >= REMEMBERED:
            raise ToolError("the caller has not been told yet what came of many other tools; tell them that first")
        key = self._keys.setdefault(wish, self._ids.new("use"))
        errand = Errand(tool, call, wish, key, self._enter(call, before) if remembered else None)
        self._errands.append(errand)
        self._begin(tool, call, about, key).add_done_callback(partial(self._finished, errand))
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
        self._left, self.on_over = True, _nobody

    def _same(self, wish: str) -> Errand | None:
        for errand in reversed(self._errands):
            if errand.wish == wish and (errand.output is None or (errand.due and not errand.failed)):
                return errand
        return None

    def _enter(self, call: ToolCall, before: str | None) -> Item:
        item = called(self._ids, call)
        try:
            self._history.add(item, self._history.before(before) if before else None, hidden=True)
        except ItemUnknown:  # A client has deleted the message.
            self._history.add(item, hidden=True)
        return item

    def _finished(self, errand: Errand, task: "asyncio.Task[str]") -> None:
        errand.later = self._take(errand, task.result)
        if not errand.item:
            errand.due = False
        errand.over.set()
        self._tell(errand)
        if errand.later:
            errand.later.add_done_callback(lambda _: self._came_late(errand))

    def _came_late(self, errand: Errand) -> None:
        """It took longer than its time limit, of which the model and perhaps the caller have been told, and is over
        now. To replies this is another errand: what they told was that nobody knows."""
        later, errand.later = errand.later, None
        if not later or later.cancelled() or not errand.item or self._repeated(errand):
            return
        known = replace(errand, due=True, put_off=False, failed=False)
        self._errands = [other for other in self._errands if other is not errand] + [known]
        self._take(known, later.result())
        self._tell(known)

    def _repeated(self, errand: Errand) -> bool:
        """The conversation has asked again for the same use: that one waits for the same, and tells of it."""
        uses = [other for other in self._errands if other.item and other.key == errand.key]
        return uses[-1] is not errand

    def _take(self, errand: Errand, outcome: Callable[[], str]) -> "asyncio.Future[Callable[[], str]] | None":
        """Put down what came of it; returns where that will yet be known, if it is not."""
        unknown, later = False, None
        try:
            errand.output = outcome()
        except ToolError as error:
            errand.output, errand.failed = f"Error: {error}", True
            if isinstance(error, OutcomeUnknown):
                unknown, later = True, error.later
        except asyncio.CancelledError:
            errand.output, errand.failed, unknown = "Error: it was stopped before it was done", True, True
        except Exception:
            log.exception("the tool %s failed", errand.tool.name)
            errand.output, errand.failed, unknown = f"Error: {errand.tool.name} failed", True, True
        if not unknown and self._keys.get(errand.wish) == errand.key:
            del self._keys[errand.wish]
        if errand.item:
            self._record(errand, errand.item, errand.output)
        return later

    def _tell(self, errand: Errand) -> None:
        self._forget()
        if self._left:
            log.warning("a tool of a call that has ended is over: %s: %s", errand.tool.name, str(errand.output)[:200])
        self.on_over()

    def _record(self, errand: Errand, item: Item, result: str) -> None:
        """The result stands behind its call. Where the conversation has gone on without it both stand at its end, where
        the model looks for what it has to answer. No client can have deleted them, but they may have left the prompt
        and gone."""
        history, before = self._history, errand.result
        output = Item(self._ids.new("item"), "function_call_output", call_id=errand.call.call_id, output=result)
        if before or (not errand.waiting and history.items[-1] is not item):
            for old in (item, before):
                if old and old.id in history:
                    history.delete(old.id)
            history.add(item, hidden=True)
        history.add(output, item.id, hidden=True)
        errand.result = output

    def _forget(self) -> None:
        """The oldest go, first of those that the caller was told of."""
        spare = sorted((errand for errand in self._errands if errand.spare), key=lambda errand: errand.due)
        for errand in spare[: max(0, len(self._errands) - REMEMBERED)]:
            self._errands.remove(errand)
        while len(self._keys) > REMEMBERED:
            del self._keys[next(iter(self._keys))]


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


def _wish(tool: Tool, call: ToolCall) -> str:
    """The tool and its arguments, however the model spelt them."""
    try:
        arguments = json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        arguments = call.arguments
    return f"{tool.name} {arguments}"


def _nobody() -> None:
    """Who is told while nobody listens."""
