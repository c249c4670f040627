"""Tools that are Python functions: async ones on the event loop, the others in threads of their own.

A function that hangs cannot be stopped. It keeps its thread, and nobody waits for it any more. So no call may have so
many threads that other calls get none, and no tenant so many that other tenants get none. Its outcome is still
delivered when it ends (`OutcomeUnknown.later`).
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from voicepipe.agent import Tool
from voicepipe.base.errors import ConfigError, OutcomeUnknown, ToolError
from voicepipe.base.queues import QueueFigures, QueueOutcomes, show
from voicepipe.base.round_robin import Ring
from voicepipe.base.token_bucket import FairShare
from voicepipe.tools import tool_code

T = TypeVar("T")
AsText = Callable[[Any], str]
log = logging.getLogger(__name__)
RESULT_CHARS = 8000
"""A longer result is cut: it has to fit into the model's context."""
SHARE = 16
"""Threads of one function of one tenant's, for all its calls."""
THREADS = 256
"""Threads of all functions together."""
TENANTS_TIMES = 3
"""A tenant may have so many times what is free: three quarters of all if it is alone."""


class _ToolThreads:
    """The threads of one function, for one tenant. Calls wait for them in turn."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.hung = FairShare(SHARE)
        """Threads whose function nobody waits for any more, by call."""
        self._busy = FairShare(SHARE)
        """All threads, by call."""
        self.waiting: Ring[tuple[str, asyncio.Future[None]]] = Ring()
        """Calls that wait for a thread."""

    async def take(self, call: str, ends: float) -> None:
        """Take a thread for this call. Raises TimeoutError: there was none by the loop's second `ends`."""
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.put((call, given), call)
        self._hand_out()
        try:
            async with asyncio.timeout_at(ends):
                await given
        except BaseException:
            self.waiting.remove((call, given))
            if not given.cancelled():  # It was given one in the same step of the loop.
                self.give_back(call)
            raise

    def give_back(self, call: str) -> None:
        self._busy.give_back(call)
        self._hand_out()

    def _hand_out(self) -> None:
        while turn := self.waiting.pop(self._busy.may):
            call, given = turn
            if not given.cancelled():
                self._busy.take(call)
                given.set_result(None)


class PythonTools:
    """Runs the tools that are Python functions, for all calls of a PoP, within limits for each function, call and
    tenant."""

    def __init__(self) -> None:
        self._of_tenants = FairShare(THREADS, TENANTS_TIMES)
        self._of_calls = FairShare(THREADS)
        """The same threads, by call: no call may have all that its tenant may."""
        self._shares: dict[tuple[str, str], _ToolThreads] = {}
        self._hung: set[asyncio.Task[Any]] = set()
        """Async functions that were cancelled and go on."""
        self._waits = QueueOutcomes()
        show(self)

    def figures(self) -> QueueFigures:
        """As `queues.Queue`, for functions that need a thread."""
        waiting = sum(len(share.waiting) for share in self._shares.values())
        return self._waits.figures("tool-threads", waiting=waiting, running=self._of_tenants.busy)

    async def call(self, tool: Tool, arguments: dict[str, Any], about: Mapping[str, Any], tenant: str) -> str:
        """Call the tool's function. Returns its result as the model reads it. Takes at most `tool.timeout_ms`. Raises
        ToolError."""
        ends = asyncio.get_running_loop().time() + tool.timeout_ms / 1000
        function = await self._loaded(tool, about["id"], tenant, ends)
        signature = inspect.signature(function)
        if "call" in signature.parameters and "call" not in tool.parameters.get("properties", {}):
            arguments = {**arguments, "call": about}
        try:
            signature.bind(**arguments)
        except TypeError as error:
            raise ToolError(f"{tool.name} was called with wrong arguments: {error}") from None
        return await self._run(tool, partial(function, **arguments), about["id"], tenant, ends, _for_model)

    async def call_hook(self, hook: Tool, given: Mapping[str, Any], call: str, tenant: str) -> str:
        """Call the hook's function with what it takes of `given`. Returns its whole result: text as it is, everything
        else as JSON. Otherwise as `call`."""
        ends = asyncio.get_running_loop().time() + hook.timeout_ms / 1000
        function = await self._loaded(hook, call, tenant, ends)
        return await self._run(hook, partial(function, **tool_code.taken(function, given)), call, tenant, ends, text)

    async def _loaded(self, tool: Tool, call: str, tenant: str, ends: float) -> Callable[..., Any]:
        function = tool_code.known(tool.function)
        if function is None:
            try:
                function = await self._in_thread(tool, self._share(tool, tenant), call, ends, partial(load, tool))
            except OutcomeUnknown:
                raise ToolError(f"{tool.name} does not answer at the moment") from None
        return function

    async def _run(
        self, tool: Tool, function: "partial[Any]", call: str, tenant: str, ends: float, as_text: AsText
    ) -> str:
        loop = asyncio.get_running_loop()
        if inspect.iscoroutinefunction(function.func):
            return await self._on_loop(tool, ends, _contained(function(), as_text))
        share = self._share(tool, tenant)
        return await self._in_thread(tool, share, call, ends, lambda: _answer(function(), loop, as_text))

    def _share(self, tool: Tool, tenant: str) -> _ToolThreads:
        return self._shares.setdefault((tenant, tool.function), _ToolThreads(tenant))

    def left(self) -> int:
        """Functions that still run, though nobody may wait for them any more."""
        return self._of_tenants.busy + len(self._hung)

    async def _on_loop(self, tool: Tool, ends: float, job: Coroutine[Any, Any, str]) -> str:
        # As a task of its own: a function may refuse to be cancelled, and is not waited for then.
        task = asyncio.create_task(job)
        ran: asyncio.Future[Callable[[], str]] = asyncio.get_running_loop().create_future()

        def over(task: "asyncio.Task[str]") -> None:
            if task in self._hung and task.cancelled():
                ran.cancel()
            else:
                ran.set_result(partial(_outcome, tool, task.result))
            self._hung.discard(task)

        task.add_done_callback(over)
        try:
            return await within(tool, ends, ran)
        finally:
            if not task.done():
                task.cancel()
                self._hung.add(task)

    async def _in_thread(self, tool: Tool, share: _ToolThreads, call: str, ends: float, job: Callable[[], T]) -> T:
        asked = asyncio.get_running_loop().time()
        if not share.hung.may(call):  # Nor once all the others have ended.
            self._waits.refused += 1
            log.error("%s: not begun for %s, %d threads of it hang", tool.name, call, share.hung.busy)
            raise ToolError(f"{tool.name} does not answer at the moment")
        try:
            await share.take(call, ends)
        except TimeoutError:
            self._waits.refused += 1
            raise ToolError(f"{tool.name} has too much to do at the moment") from None
        try:
            ran = self._start(tool, share, call, job)
        except RuntimeError as error:  # The system has no thread for us, perhaps.
            share.give_back(call)
            self._waits.refused += 1
            log.error("%s: not begun for %s: %s", tool.name, call, error)
            raise ToolError(f"{tool.name} has too much to do at the moment") from None
        self._waits.began(asyncio.get_running_loop().time() - asked)
        try:
            return await within(tool, ends, ran)
        except (OutcomeUnknown, asyncio.CancelledError):
            if not ran.done():
                share.hung.take(call)
                ran.add_done_callback(lambda _: share.hung.give_back(call))
            raise

    def _start(
        self, tool: Tool, share: _ToolThreads, call: str, job: Callable[[], T]
    ) -> "asyncio.Future[Callable[[], T]]":
        """Start a thread for one job, as a daemon: one that hangs must not keep the process from ending. Raises
        RuntimeError: there is no thread."""
        if not (self._of_tenants.may(share.tenant) and self._of_calls.may(call)):
            raise RuntimeError(f"{self._of_tenants.busy} threads of tools are busy; the others are for other callers")
        loop = asyncio.get_running_loop()
        ran: asyncio.Future[Callable[[], T]] = loop.create_future()

        def over(outcome: Callable[[], T]) -> None:
            self._of_tenants.give_back(share.tenant)
            self._of_calls.give_back(call)
            share.give_back(call)
            ran.set_result(partial(_outcome, tool, outcome))

        def run() -> None:
            outcome = _caught(job)
            with suppress(RuntimeError):  # The loop is closed: it was hung up to now.
                loop.call_soon_threadsafe(over, outcome)

        threading.Thread(target=run, name=f"tool {tool.name}", daemon=True).start()
        self._of_tenants.take(share.tenant)
        self._of_calls.take(call)
        return ran


async def within(tool: Tool, ends: float, ran: "asyncio.Future[Callable[[], T]]") -> T:
    """The outcome of `ran` by the loop's second `ends`. Raises ToolError."""
    await asyncio.wait({ran}, timeout=ends - asyncio.get_running_loop().time())
    if not ran.done() or ran.cancelled():
        raise too_long(tool, ran)
    return ran.result()()


def too_long(tool: Tool, ran: "asyncio.Future[Any] | None" = None) -> OutcomeUnknown:
    """The error that nobody waits for the tool any longer."""
    why = f"{tool.name} took longer than {tool.timeout_ms} ms; nobody knows whether it was done"
    return OutcomeUnknown(why, ran)


def text(result: Any) -> str:
    """A function's result as the model reads it: text as it is, None as "", everything else as JSON."""
    if isinstance(result, str):
        return result
    if result is None:
        return ""
    try:
        return msgspec.json.encode(result).decode()
    except (TypeError, ValueError, msgspec.MsgspecError):
        return str(result)


def _for_model(result: Any) -> str:
    return shorten(text(result))


def shorten(result: str) -> str:
    """`result`, cut to at most 8000 characters."""
    return result if len(result) <= RESULT_CHARS else result[: RESULT_CHARS - 1] + "…"


def load(tool: Tool) -> Callable[..., Any]:
    """The function behind `module:function`. Raises ToolError. Imports, so not for the event loop."""
    try:
        return tool_code.load(tool.function)
    except ConfigError as error:
        log.error("%s is not there: %s", tool.name, error)
        raise ToolError(f"{tool.name} is not there") from None


def _caught(job: Callable[[], T]) -> Callable[[], T]:
    """A function that gives the job's result, or raises what it raised."""
    try:
        result = job()
    except BaseException as error:
        failure = error

        def fail() -> T:
            raise failure

        return fail
    return lambda: result


def _outcome(tool: Tool, outcome: Callable[[], T]) -> T:
    """The outcome of a job. Raises ToolError. What the function raised is for the log alone, unless it wrote it for the
    model."""
    try:
        return outcome()
    except ToolError:
        raise
    except BaseException as error:
        log.error("%s failed", tool.name, exc_info=error)
        raise ToolError(f"{tool.name} failed") from None


async def _contained(job: Awaitable[Any], as_text: AsText) -> str:
    """Await a function. `sys.exit` in it is that function's failure, and not the server's end."""
    try:
        return as_text(await job)
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"it ended with {type(error).__name__}") from error


def _answer(result: Any, loop: asyncio.AbstractEventLoop, as_text: AsText) -> str:
    """A function's result as text; in a thread. A plain function may return an awaitable: an async function in a
    decorator does."""
    if inspect.isawaitable(result):
        return asyncio.run_coroutine_threadsafe(_contained(result, as_text), loop).result()
    return as_text(result)
