"""One use of a tool that a call has begun, and the request that it is for: what `tool_runs.py` keeps."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from voicepipe.agent import Tool
from voicepipe.conversation.events import Item
from voicepipe.conversation.prompt import ToolCall
from voicepipe.tools.progress import Tell

PROGRESS_TEXTS, PROGRESS_CHARS = 10, 200
"""Texts of one run's progress that are taken, and characters of each."""


class BeginTool(Protocol):
    """A function that begins to run a tool: `ToolRunner.begin`, bound to the call's tenant by `_AdmittedCall.open`
    (`pop/pop.py`)."""

    def __call__(
        self, tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str, tell: Tell
    ) -> "asyncio.Task[str]":
        """Run the tool to its end, whatever becomes of the reply or the call. The result is text for the model. The
        task may fail with ToolError; to cancel it is to stop the tool, where that can be.

        `key`: what this use of the tool is known by to a server that is asked twice. The same key comes with the same
        `call` and `about`. `tell` gets what the tool says of its progress, on the event loop.
        """


@dataclass(eq=False, slots=True)
class ToolRequest:
    """A tool with its arguments, as a call asks for it: from the first try until the outcome of every try is known."""

    text: str
    """The tool and its arguments, normalised: equal texts are the same request."""
    key: str
    """The key that every try sends, as `Idempotency-Key` where it is a webhook."""
    call: ToolCall
    about: Mapping[str, Any]
    """The phone call, as in the first try: a server may refuse a key that comes with another request."""
    lost: bool = False
    """A try is over, and we shall never learn whether it was done."""
    later: "asyncio.Future[Callable[[], str]] | None" = None
    """A try exceeded its time limit and is not over: this future will have its outcome."""

    @property
    def unknown(self) -> bool:
        """Whether nobody knows the outcome of an earlier try."""
        return self.lost or self.later is not None

    def over(self) -> None:
        """Note the end of a try that exceeded its time limit, if it has ended."""
        if self.later and self.later.done():
            self.lost |= self.later.cancelled()
            self.later = None


@dataclass(eq=False, slots=True)
class ToolRun:
    """A tool that was begun: one try of a tool request."""

    tool: Tool
    call: ToolCall
    request: ToolRequest
    item: Item | None
    """The item of its call in the conversation; None: only replies beside the conversation have asked for it."""
    result: Item | None = None
    """The item of its result in the conversation."""
    output: str | None = None
    """Its result, as the model reads it; None: it runs."""
    failed: bool = False
    due: bool = True
    """The caller has not heard its result yet. Beside the conversation: no reply has read it."""
    put_off: bool = False
    """No reply is begun for the result alone: there was one, since a model that fails must not be asked for ever, or
    the next reply that is asked for tells it."""
    waiting: int = 0
    """Number of replies that wait for it."""
    bridged: int = 0
    """Number of `while_running` texts that the caller heard."""
    progress: str = ""
    """What the tool said last of its progress, as long as the caller has not heard it."""
    progress_texts: int = 0
    """Number of such texts that were taken."""
    early: bool = False
    """It was begun for a reply that is only prepared: the conversation, and everybody else, knows nothing of it."""
    task: "asyncio.Task[str] | None" = None
    """Runs it; None: it is over."""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def spare(self) -> bool:
        """Whether it is over for good and no reply to it is pending, so that it may be forgotten."""
        return self.output is not None and not self.request.later and (self.put_off or not self.due)

    @property
    def bridge(self) -> str:
        """The text that the caller hears next while it runs: what it says of its progress, or a `while_running` text;
        "" if there is none, or the tool is over."""
        texts = self.tool.while_running
        if self.output is not None:
            return ""
        return self.progress or (texts[min(self.bridged, len(texts) - 1)] if texts else "")

    def tells(self, text: str) -> None:
        """The tool says how far it has come."""
        if self.progress_texts < PROGRESS_TEXTS and (words := " ".join(text[:PROGRESS_CHARS].split())):
            self.progress, self.progress_texts = words, self.progress_texts + 1

    async def wait(self) -> None:
        """Return when it is over. Cancelling this does not cancel the tool."""
        self.waiting += 1
        try:
            await self.over.wait()
            if not (self.item or self.early):
                self.due = False
        finally:
            self.waiting -= 1


def request_text(tool: Tool, call: ToolCall) -> str:
    """The tool and its arguments as one normalised text, however the model spelt them. Two agents of one call may have
    tools of one name, so what the tool is stands in it as well."""
    does = tool.webhook.url if tool.webhook else tool.function
    try:
        arguments = json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        arguments = call.arguments
    return f"{tool.name} {does} {arguments}"
