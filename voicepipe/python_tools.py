"""Tools that are Python functions: async ones on the event loop, the others in threads of their own.

A function that hangs cannot be stopped. It keeps its thread, and nobody waits for it any more. Such threads are
counted, so that only the same tenant's callers of the same function come to feel it.
"""

import asyncio
import importlib
import inspect
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from voicepipe.agent import Tool
from voicepipe.errors import OutcomeUnknown, ToolError

T = TypeVar("T")
log = logging.getLogger(__name__)
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

    async def call(self, tool: Tool, arguments: dict[str, Any], about: Mapping[str, Any], tenant: str) -> Any:
        """What the function returns. Takes at most `tool.timeout_ms`. Raises ToolError."""
        ends = asyncio.get_running_loop().time() + tool.timeout_ms / 1000
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
        bound = partial(function, **arguments)
        if inspect.iscoroutinefunction(function):
            return await self._on_loop(tool, ends, _contained(bound()))
        return await self._in_thread(tool, share, ends, bound)

    def left(self) -> int:
        """Functions that still run, though nobody may wait for them any more."""
        return self.threads + len(self._hung)

    async def _on_loop(self, tool: Tool, ends: float, job: Coroutine[Any, Any, Any]) -> Any:
        # As a task of its own: a function may refuse to be cancelled, and is not waited for then.
        task = asyncio.create_task(job)
        try:
            await asyncio.wait({task}, timeout=ends - asyncio.get_running_loop().time())
        finally:
            if not task.done():
                task.cancel()
                self._hung.add(task)
                task.add_done_callback(self._hung.discard)
                task.add_done_callback(_read)
        if not task.done():
            raise too_long(tool)
        return _outcome(tool, task.result)

    async def _in_thread(self, tool: Tool, share: _Share, ends: float, job: Callable[[], T]) -> T:
        if share.hung >= SHARE or self.threads >= THREADS:
            log.error("%s: not begun, %d threads of it hang, %d in all are busy", tool.name, share.hung, self.threads)
            raise ToolError(f"{tool.name} does not answer at the moment")
        try:
            async with asyncio.timeout_at(ends):
                await share.free.acquire()
        except TimeoutError:
            raise ToolError(f"{tool.name} has too much to do at the moment") from None
        ran = self._start(tool, share, job)
        try:
            async with asyncio.timeout_at(ends):
                await asyncio.shield(ran)
        except TimeoutError:
            share.hung += 1
            ran.add_done_callback(partial(_back, share))
            raise too_long(tool) from None
        return _outcome(tool, ran.result())

    def _start(self, tool: Tool, share: _Share, job: Callable[[], T]) -> "asyncio.Future[Callable[[], T]]":
        """A thread for one job, as a daemon: one that hangs must not keep the process from ending."""
        loop = asyncio.get_running_loop()
        ran: asyncio.Future[Callable[[], T]] = loop.create_future()
        self.threads += 1

        def over(outcome: Callable[[], T]) -> None:
            self.threads -= 1
            share.free.release()
            ran.set_result(outcome)

        def run() -> None:
            outcome = _caught(job)
            with suppress(RuntimeError):  # The loop is closed: it was hung up to now.
                loop.call_soon_threadsafe(over, outcome)

        threading.Thread(target=run, name=f"tool {tool.name}", daemon=True).start()
        return ran


def too_long(tool: Tool) -> OutcomeUnknown:
    """Nobody waits for it any longer."""
    return OutcomeUnknown(f"{tool.name} took longer than {tool.timeout_ms} ms; nobody knows whether it was done")


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


async def _contained(job: Coroutine[Any, Any, T]) -> T:
    """`sys.exit` in a function is that function's failure, and not the server's end."""
    try:
        return await job
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"it ended with {type(error).__name__}") from error


def _back(share: _Share, ran: "asyncio.Future[Any]") -> None:
    """A thread that hung has ended."""
    share.hung -= 1


def _read(task: "asyncio.Task[Any]") -> None:
    """What comes of it is nobody's business any more."""
    if not task.cancelled():
        task.exception()
