"""Tools that are Python functions: async ones on the event loop, the others in threads of their own.

A function that hangs cannot be stopped. It keeps its thread, and nobody waits for it any more. Such threads are
counted, so that only the same tenant's callers of the same function come to feel it. What comes of it in the end is
told all the same (`OutcomeUnknown.later`), and a repeat of the same use waits for the run that there is.
"""

import asyncio
import importlib
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import msgspec

from voicepipe.agent import Tool
from voicepipe.errors import OutcomeUnknown, ToolError

T = TypeVar("T")
log = logging.getLogger(__name__)
RESULT_CHARS = 8000
"""A longer result is cut: it has to fit into the model's context."""
SHARE = 16
"""Threads that one function of one tenant's may hold."""
THREADS = 256
"""All threads: sixteen functions have to hang before others feel it."""


@dataclass(eq=False, slots=True)
class _Share:
    """The threads of one function and tenant."""

    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SHARE))
    hung: int = 0
    """Threads whose function nobody waits for any more."""


class PythonTools:
    """Those of all calls of a PoP."""

    def __init__(self) -> None:
        self.threads = 0
        """That run a function now."""
        self._loaded: dict[str, Callable[..., Any]] = {}
        self._shares: dict[tuple[str, str], _Share] = {}
        self._hung: set[asyncio.Task[Any]] = set()
        """Async functions that were cancelled and go on."""
        self._late: dict[str, asyncio.Future[Callable[[], str]]] = {}
        """Functions that took too long and still run, by the key of their use."""

    async def call(self, tool: Tool, arguments: dict[str, Any], about: Mapping[str, Any], tenant: str, key: str) -> str:
        """What the function returns, as the model reads it. Takes at most `tool.timeout_ms`. `key`: as
        `errands.BeginTool` has it; a use whose function still runs is not begun again. Raises ToolError."""
        ends = asyncio.get_running_loop().time() + tool.timeout_ms / 1000
        if running := self._late.get(key):
            return await _within(tool, ends, running)
        share = self._shares.setdefault((tenant, tool.function), _Share())
        function = self._loaded.get(tool.function)
        if function is None:
            try:
                function = await self._in_thread(tool, share, ends, partial(load, tool))
            except OutcomeUnknown:
                raise ToolError(f"{tool.name} does not answer at the moment") from None
            self._loaded[tool.function] = function
        signature = inspect.signature(function)
        if "call" in signature.parameters and "call" not in tool.parameters.get("properties", {}):
            arguments = {**arguments, "call": about}
        try:
            signature.bind(**arguments)
        except TypeError as error:
            raise ToolError(f"{tool.name} was called with wrong arguments: {error}") from None
        try:
            if inspect.iscoroutinefunction(function):
                return await self._on_loop(tool, ends, _contained(function(**arguments)))
            loop = asyncio.get_running_loop()
            return await self._in_thread(tool, share, ends, lambda: _answer(function(**arguments), loop))
        except OutcomeUnknown as error:
            if error.later and not error.later.done():
                self._late[key] = error.later
                error.later.add_done_callback(lambda _: self._late.pop(key))
            raise

    def left(self) -> int:
        """Functions that still run, though nobody may wait for them any more."""
        return self.threads + len(self._hung)

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
            return await _within(tool, ends, ran)
        finally:
            if not task.done():
                task.cancel()
                self._hung.add(task)

    async def _in_thread(self, tool: Tool, share: _Share, ends: float, job: Callable[[], T]) -> T:
        if share.hung >= SHARE or self.threads >= THREADS:
            log.error("%s: not begun, %d threads of it hang, %d in all are busy", tool.name, share.hung, self.threads)
            raise ToolError(f"{tool.name} does not answer at the moment")
        try:
            async with asyncio.timeout_at(ends):
                await share.free.acquire()
        except TimeoutError:
            raise ToolError(f"{tool.name} has too much to do at the moment") from None
        try:
            if self.threads >= THREADS:
                raise RuntimeError(f"{THREADS} threads of tools are busy")
            ran = self._start(tool, share, job)
        except RuntimeError as error:  # The system has no thread for us, perhaps.
            share.free.release()
            log.error("%s: not begun: %s", tool.name, error)
            raise ToolError(f"{tool.name} has too much to do at the moment") from None
        try:
            return await _within(tool, ends, ran)
        except OutcomeUnknown:
            if not ran.done():
                share.hung += 1
                ran.add_done_callback(partial(_back, share))
            raise

    def _start(self, tool: Tool, share: _Share, job: Callable[[], T]) -> "asyncio.Future[Callable[[], T]]":
        """A thread for one job, as a daemon: one that hangs must not keep the process from ending. Raises RuntimeError:
        there is none."""
        loop = asyncio.get_running_loop()
        ran: asyncio.Future[Callable[[], T]] = loop.create_future()

        def over(outcome: Callable[[], T]) -> None:
            self.threads -= 1
            share.free.release()
            ran.set_result(partial(_outcome, tool, outcome))

        def run() -> None:
            outcome = _caught(job)
            with suppress(RuntimeError):  # The loop is closed: it was hung up to now.
                loop.call_soon_threadsafe(over, outcome)

        threading.Thread(target=run, name=f"tool {tool.name}", daemon=True).start()
        self.threads += 1
        return ran


async def _within(tool: Tool, ends: float, ran: "asyncio.Future[Callable[[], T]]") -> T:
    """What comes of it by the loop's second `ends`. Raises ToolError."""
    await asyncio.wait({ran}, timeout=ends - asyncio.get_running_loop().time())
    if not ran.done() or ran.cancelled():
        raise too_long(tool, ran)
    return ran.result()()


def too_long(tool: Tool, ran: "asyncio.Future[Any] | None" = None) -> OutcomeUnknown:
    """Nobody waits for it any longer."""
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


def shorten(result: str) -> str:
    """At most 8000 characters."""
    return result if len(result) <= RESULT_CHARS else result[: RESULT_CHARS - 1] + "…"


def load(tool: Tool) -> Callable[..., Any]:
    """The function behind `module:function`. Raises ToolError. Imports, so not for the event loop."""
    module, colon, name = tool.function.partition(":")
    try:
        function = getattr(importlib.import_module(module), name) if colon and module and name else None
    except (ImportError, AttributeError) as error:
        log.error("%s is not there: %s", tool.name, error)
        function = None
    if not callable(function):
        log.error('%s has no function: expected "module:function", got "%s"', tool.name, tool.function)
        raise ToolError(f"{tool.name} is not there")
    return function  # type: ignore[no-any-return]


def _caught(job: Callable[[], T]) -> Callable[[], T]:
    """What gives the job's result, or raises what it raised."""
    try:
        result = job()
    except BaseException as error:
        failure = error

        def fail() -> T:
            raise failure

        return fail
    return lambda: result


def _outcome(tool: Tool, outcome: Callable[[], T]) -> T:
    """Raises ToolError. What the function raised is for the log alone, unless it wrote it for the model."""
    try:
        return outcome()
    except ToolError:
        raise
    except BaseException as error:
        log.error("%s failed", tool.name, exc_info=error)
        raise ToolError(f"{tool.name} failed") from None


async def _contained(job: Awaitable[Any]) -> str:
    """`sys.exit` in a function is that function's failure, and not the server's end."""
    try:
        return shorten(text(await job))
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"it ended with {type(error).__name__}") from error


def _answer(result: Any, loop: asyncio.AbstractEventLoop) -> str:
    """In a thread. A plain function may return what is yet to be awaited: an async function in a decorator does."""
    if inspect.isawaitable(result):
        return asyncio.run_coroutine_threadsafe(_contained(result), loop).result()
    return shorten(text(result))


def _back(share: _Share, ran: "asyncio.Future[Any]") -> None:
    """A thread that hung has ended."""
    share.hung -= 1
