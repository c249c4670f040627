"""The tools that one call has begun. Each is finished beside the reply that asked for it, exactly once, and the
conversation says so, whatever has become of that reply.

A tool request is a tool and its arguments. Until the caller has heard its result, the same request gets the same run: a
model that asks again, since its reply was cut or the turn goes on, gets what is under way or has come already. A
request whose outcome nobody knows may be tried again, as a repeat of the first try.

| class | what it is |
|---|---|
| `ToolCall` (`conversation/prompt.py`) | what the model wrote: an id, a tool's name and arguments |
| `ToolRequest` (`tool_run.py`) | a tool with its arguments, until every try's outcome is known; equal calls share it |
| `ToolRun` (`tool_run.py`) | one try of a request, and its result |
| `_ModelToolUse` (`reply_writer.py`) | one `ToolCall` in one reply, with the run that it got, or why it got none |
| `ToolUse` (`conversation/events.py`) | that use as clients and operators read it once the reply is over |
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from voicepipe.agent import Tool
from voicepipe.base.errors import ItemUnknown, OutcomeUnknown, ToolError
from voicepipe.call.tool_run import BeginTool, ToolRequest, ToolRun, request_text
from voicepipe.conversation.events import Item
from voicepipe.conversation.history import History, Ids
from voicepipe.conversation.prompt import Prompt, ToolCall
from voicepipe.redaction.redactor import logged
from voicepipe.tools.python_tools import within

log = logging.getLogger(__name__)
MOST = 16
"""Tools of one call that run at a time."""
REMEMBERED = 64
"""Tool runs that a call remembers, and tool requests whose outcome nobody knows. No tool is begun while replies are
pending for as many runs."""
UNKNOWN = "; nobody knows whether an earlier try was done"
CANCELLED = "cancelled: the caller interrupted"


class ToolRuns:
    """The tool runs of one call. They go on after the call has ended: call `leave` then."""

    def __init__(self, history: History, ids: Ids, begin_tool: BeginTool) -> None:
        self.on_over: Callable[[], None] | None = None
        """Called when a tool is over, and the conversation has its result. Set by `PendingReplies`."""
        self._history = history
        self._ids = ids
        self._begin_tool = begin_tool
        self._tool_runs: list[ToolRun] = []
        self._requests: dict[str, ToolRequest] = {}
        """By their texts: requests that are tried now, and those whose outcome nobody knows."""
        self._left = False

    def begin(
        self, tool: Tool, call: ToolCall, about: Mapping[str, Any], *, remembered: bool, before: str | None = None
    ) -> ToolRun:
        """Run a tool, or join the run of the same request that is under way. `before`: the message of the reply that
        asks; the call's item stands before it. Raises ToolError: the call has too many runs under way."""
        text = request_text(tool, call)
        if request := self._requests.get(text):
            self._came_late(request)  # In this step of the loop: no listener was notified yet.
        if same := self.same(text):
            if remembered and not same.item:
                self._adopt(same, before)
            return same
        if sum(tool_run.output is None for tool_run in self._tool_runs) >= MOST:
            raise ToolError("too many tools of this call are still running")
        if sum(not tool_run.spare for tool_run in self._tool_runs) >= REMEMBERED:
            raise ToolError("the caller has not been told yet what came of many other tools; tell them that first")
        request = self._requests.pop(text, None) or ToolRequest(text, self._ids.new("use"), call, about)
        self._requests[text] = request
        item = self._enter(call, before) if remembered else None
        tool_run = ToolRun(tool, call, request, item, put_off=not remembered)
        self._tool_runs.append(tool_run)
        self._try(tool_run)
        return tool_run

    def begin_early(self, tool: Tool, call: ToolCall, about: Mapping[str, Any]) -> ToolRun:
        """Run a tool that only reads, for a reply that is only prepared. Nobody knows of the run until `adopt`."""
        request = ToolRequest(request_text(tool, call), self._ids.new("use"), call, about)
        tool_run = ToolRun(tool, call, request, None, early=True)
        self._try(tool_run)
        return tool_run

    def unsettled(self, text: str) -> bool:
        """Whether such a request is tried now, or nobody knows what came of it: the next try must not be an early
        one."""
        return text in self._requests

    def adopt(self, tool_run: ToolRun, before: str | None = None) -> None:
        """The reply is confirmed for which this was begun early: enter it in the conversation. `before`: as `begin`
        has it."""
        request = tool_run.request
        if tool_run.early:
            tool_run.early = False
            self._tool_runs.append(tool_run)
            if tool_run.output is None or request.unknown:
                self._requests.setdefault(request.text, request)
        if not tool_run.item:
            self._adopt(tool_run, before)
        self._came_late(request)

    def cancel(self, tool_run: ToolRun) -> None:
        """Stop a run that waits for nobody any more: the caller has interrupted. What it still does counts no more."""
        request = tool_run.request
        tool_run.output, tool_run.failed, tool_run.due, request.later = CANCELLED, True, False, None
        if self._requests.get(request.text) is request:
            del self._requests[request.text]
        tool_run.over.set()
        if tool_run.task:
            tool_run.task.cancel()
        if tool_run.item:
            self._record(tool_run, tool_run.item, CANCELLED)
        self._forget()

    def call_ids(self) -> set[str]:
        """The call ids of all remembered runs, also of those beside the conversation."""
        return {tool_run.call.call_id for tool_run in self._tool_runs}

    def running(self) -> list[ToolRun]:
        """The runs of the conversation that are not over."""
        return [tool_run for tool_run in self._tool_runs if tool_run.item and tool_run.output is None]

    def due(self) -> list[ToolRun]:
        """The runs of the conversation that are over and whose results the caller has not heard."""
        return [
            tool_run for tool_run in self._tool_runs if tool_run.item and tool_run.output is not None and tool_run.due
        ]

    def pending(self) -> list[ToolRun]:
        """The due runs for which no reply has been begun yet."""
        return [tool_run for tool_run in self.due() if not tool_run.put_off]

    def known(self, prompt: Prompt) -> list[ToolRun]:
        """The due runs whose results a model reads in this prompt."""
        read = {(message.call_id, message.text) for message in prompt.messages if message.role == "tool"}
        return [tool_run for tool_run in self.due() if (tool_run.call.call_id, tool_run.output) in read]

    def bring_up(self, tool_runs: Sequence[ToolRun]) -> None:
        """A reply is begun for these alone: move them to the end of the conversation, where a model looks for what to
        answer."""
        last = self._history.items[-1] if self._history.items else None
        for tool_run in tool_runs:
            if tool_run.item and last not in [other.result for other in tool_runs]:
                self._record(tool_run, tool_run.item, tool_run.output or "")

    def delivered(self, tool_runs: Iterable[ToolRun]) -> None:
        """A reply that knows these results begins to be heard: they are not due any more."""
        for tool_run in tool_runs:
            tool_run.due = False

    def put_off(self, tool_runs: Iterable[ToolRun]) -> None:
        """The next reply that the caller or the client asks for tells these results; none is begun for them."""
        for tool_run in tool_runs:
            tool_run.put_off = True

    def taken_back(self, tool_runs: Iterable[ToolRun]) -> None:
        """These results are due again: the reply that told them was a cut-in, or was cut before the caller can have
        understood it."""
        for tool_run in tool_runs:
            tool_run.due = True

    def leave(self) -> None:
        """The call has ended; running tools are finished all the same."""
        if self._left:
            return
        self._left, self.on_over = True, None
        for tool_run in self._tool_runs:
            if tool_run.due and not tool_run.item and tool_run.output is not None:
                _warn("no reply has read what came of a tool", tool_run)

    def _try(self, tool_run: ToolRun) -> None:
        """Begin a try. An earlier try that is not over is waited for instead."""
        tool, request = tool_run.tool, tool_run.request
        if request.later:
            ends = asyncio.get_running_loop().time() + tool.timeout_ms / 1000
            tool_run.task = asyncio.create_task(within(tool, ends, request.later))
        else:
            tool_run.task = self._begin_tool(tool, request.call, request.about, request.key, tool_run.tells)
        tool_run.task.add_done_callback(partial(self._finished, tool_run))

    def same(self, text: str) -> ToolRun | None:
        """The run of the same request that is under way, or whose result the caller has not heard."""
        for tool_run in reversed(self._tool_runs):
            if tool_run.request.text == text and (tool_run.output is None or (tool_run.due and not tool_run.failed)):
                return tool_run
        return None

    def _enter(self, call: ToolCall, before: str | None) -> Item:
        item = called(self._ids, call)
        try:
            self._history.add(item, self._history.before(before) if before else None, hidden=True)
        except ItemUnknown:  # A client has deleted the message.
            self._history.add(item, hidden=True)
        return item

    def _adopt(self, tool_run: ToolRun, before: str | None) -> None:
        """Enter a run in the conversation that only replies beside it had asked for."""
        tool_run.item, tool_run.put_off = self._enter(tool_run.call, before), False
        if tool_run.output is not None:
            self._answer(tool_run, tool_run.item, tool_run.output)

    def _finished(self, tool_run: ToolRun, task: "asyncio.Task[str]") -> None:
        tool_run.task = None  # Its error knows the frames that know the run.
        if tool_run.output is not None:  # It was cancelled, and everybody told so.
            if not task.cancelled():
                task.exception()
            return
        self._take(tool_run, task.result)
        tool_run.over.set()
        if not tool_run.early:
            self._notify(tool_run)
            self._came_late(tool_run.request)

    def _came_late(self, request: ToolRequest) -> None:
        """Take the outcome of a try that exceeded its time limit, if it is over. The model and perhaps the caller have
        been told that nobody knows it, so replies get it as a run of its own."""
        later = request.later
        if not later or not later.done():
            return
        tries = [tool_run for tool_run in self._tool_runs if tool_run.request is request]
        if not tries:  # It was begun early, and no reply has needed it yet.
            return
        tool_run = next((tool_run for tool_run in reversed(tries) if tool_run.item), tries[-1])
        if tool_run.output is None:  # A repeat, which waits for the same.
            return
        request.over()
        if later.cancelled():  # It was stopped half-way.
            return
        known = replace(tool_run, due=True, put_off=not tool_run.item)
        self._tool_runs = [other for other in self._tool_runs if other is not tool_run] + [known]
        self._take(known, later.result())
        self._notify(known)
        if not known.item and not self._left:
            _warn("a tool is over that no reply waits for", known)

    def _take(self, tool_run: ToolRun, outcome: Callable[[], str]) -> None:
        request, tool_run.failed = tool_run.request, True
        try:
            tool_run.output, tool_run.failed = outcome(), False
        except OutcomeUnknown as error:
            tool_run.output = f"Error: {error}"
            self._unknown(request, error.later)
        except ToolError as error:
            request.over()  # It was a repeat, perhaps, which waited for the same.
            # The answer to a repeat says nothing of the try before it: its server is down now, still works on it (409),
            # or finds in the way what that try has booked.
            tool_run.output = f"Error: {error}{UNKNOWN if request.unknown else ''}"
        except asyncio.CancelledError:
            tool_run.output = "Error: it was stopped before it was done"
            self._unknown(request)
        except Exception:
            log.exception("the tool %s failed", tool_run.tool.name)
            tool_run.output = f"Error: {tool_run.tool.name} failed"
            self._unknown(request)
        if not tool_run.failed or not request.unknown:
            request.later = None
            if self._requests.get(request.text) is request:
                del self._requests[request.text]
        if tool_run.item:
            self._record(tool_run, tool_run.item, tool_run.output)

    def _unknown(self, request: ToolRequest, later: "asyncio.Future[Callable[[], str]] | None" = None) -> None:
        """Nobody knows the outcome of a try. `later`: the future that will have it, if it will be known."""
        if later is None:
            request.lost = True
        elif later is not request.later:
            request.later = later
            later.add_done_callback(lambda _: self._came_late(request))

    def _notify(self, tool_run: ToolRun) -> None:
        self._forget()
        if self._left:
            _warn("a tool of a call that has ended is over", tool_run)
        if self.on_over:
            self.on_over()

    def _record(self, tool_run: ToolRun, item: Item, result: str) -> None:
        """Put the result behind its call. If the conversation has gone on without it, both move to its end, where a
        model looks for what to answer. No client can have deleted them, but they may have left the prompt and gone."""
        history, before = self._history, tool_run.result
        if before or (not tool_run.waiting and history.items[-1] is not item):
            for old in (item, before):
                if old and old.id in history:
                    history.delete(old.id)
            history.add(item, hidden=True)
        self._answer(tool_run, item, result)

    def _answer(self, tool_run: ToolRun, item: Item, result: str) -> None:
        output = Item(self._ids.new("item"), "function_call_output", call_id=tool_run.call.call_id, output=result)
        self._history.add(output, item.id, hidden=True)
        tool_run.result = output

    def _forget(self) -> None:
        """Forget the oldest runs, first those whose results the caller has heard."""
        spare = sorted((tool_run for tool_run in self._tool_runs if tool_run.spare), key=lambda tool_run: tool_run.due)
        for tool_run in spare[: max(0, len(self._tool_runs) - REMEMBERED)]:
            self._tool_runs.remove(tool_run)
        lost = [text for text, request in self._requests.items() if request.lost and not request.later]
        for text in lost[: max(0, len(self._requests) - REMEMBERED)]:
            del self._requests[text]


def called(ids: Ids, call: ToolCall) -> Item:
    """The item for a model's call of a tool."""
    return Item(
        ids.new("item"), "function_call", "assistant",
        call_id=call.call_id, name=call.name, arguments=call.arguments,
    )  # fmt: skip


def _warn(what: str, tool_run: ToolRun) -> None:
    log.warning("%s: %s: %r", what, tool_run.tool.name, logged(str(tool_run.output))[:200])
