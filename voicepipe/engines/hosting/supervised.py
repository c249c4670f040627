"""An engine that may break for good is started, watched, and started again when it has."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.base.tasks import ended

log = logging.getLogger(__name__)
WATCH_S = 0.1
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Before a new start; doubled each time."""
STAYS = 3
"""From so many failed starts on, the cause probably does not go away by itself."""
IN_PROCESS = "errors that stay with a process, as CUDA's do, end with the restart of the PoP"
"""The hint for a model that runs in our own process."""
CLEAR_S = 15.0
"""What is left of an engine has so long to be cleared away; then it is left where it is."""
LEFT_BEHIND = 3
"""So many times an engine whose library hangs is left behind, with its threads and its memory, and made anew; the
next time the PoP must be restarted, which alone frees them."""
START_S = 300.0
"""A core that is loaded again and is not ready by then hangs; the slowest disk brings a model sooner. Nobody watches
then: a first start takes as long as it takes."""
SURVIVES_START_S = 60.0
"""A core that has run for so long does not fail because of its start: the next pause is the first again."""


class Core(Protocol):
    """The part of an engine that may break for good: a process, or a loaded model with its threads. `SupervisedEngine`
    watches it and makes a new one."""

    @property
    def errored(self) -> bool:
        """Whether it will work no more: it has ended, it fails (`failures.py`), or an answer is overdue."""

    @property
    def hung(self) -> bool:
        """Whether a call into it does not come back and cannot be ended: a thread and what it holds stay behind."""

    async def close(self) -> None:
        """End it, and release what it holds."""


C = TypeVar("C", bound=Core)


class SupervisedEngine(Generic[C]):
    """Starts an engine's core, watches it, and starts a new one when it breaks: for adapters, `base.Engine`,
    `base.CanBreak` and `base.Restarts`.

    `load` makes one core, ready for calls, or raises; TimeoutError: a call into the library does not come back. `name`
    is what the log calls the engine; `hint`, what it says of starts that fail repeatedly. `start_s`: see START_S; None:
    `load` has a limit of its own, and ends what it began.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[], Coroutine[Any, Any, C]],
        hint: str = "",
        *,
        start_s: float | None = START_S,
    ) -> None:
        self._name = name
        self._hint = hint
        self._start_s = start_s
        self._make = load
        self._core: C | None = None
        self.last: C | None = None
        """The present core, or the last one that broke; None before `start` and after `close`."""
        self._watching: asyncio.Task[None] | None = None
        self._clearing: asyncio.Task[None] | None = None
        self._left_behind = 0
        self.restarts = 0
        """How often a core has replaced another."""

    @property
    def alive(self) -> bool:
        return self._core is not None and not self._core.errored

    @property
    def core(self) -> C:
        """The present core. Raises EngineDead: there is none that works."""
        if self.last is None:
            raise EngineDead(f"The {self._name} has not been started.")
        if self._core is None or self._core.errored:
            raise EngineDead(f"The {self._name} does not work at present: see the log.")
        return self._core

    async def start(self) -> None:
        """Start the first core. Raises EngineError; a first start that fails is not tried again."""
        if self._watching is None:
            try:
                self._core = self.last = await self._make()
            except TimeoutError as error:
                raise EngineError(str(error)) from None
            self._watching = asyncio.create_task(self._watch(self._core), name=f"life of the {self._name}")

    async def close(self) -> None:
        watching, self._watching = self._watching, None
        await ended(watching)
        core, self._core = self._core, None
        if core is not None:
            await self._clear(core)
        elif self._clearing is not None:
            await asyncio.wait({self._clearing}, timeout=CLEAR_S)
        self.last = None

    async def _watch(self, core: C) -> None:
        pause_s, clock = FIRST_PAUSE_S, asyncio.get_running_loop().time
        while True:
            born = clock()
            while not core.errored:  # noqa: ASYNC110
                await asyncio.sleep(WATCH_S)
            if clock() - born > SURVIVES_START_S:
                pause_s = FIRST_PAUSE_S
            self._core = None
            hung = core.hung
            log.error("the %s %s; nothing is asked of it until it is back", self._name, "hangs" if hung else "ended")
            await self._clear(core)
            if hung and self._leave_behind():
                return
            if (again := await self._again(pause_s)) is None:
                return
            core, pause_s = again
            self._core = self.last = core
            self.restarts += 1
            log.warning("the %s is back", self._name)

    def _leave_behind(self) -> bool:
        """Leave a thread of its library behind, with what it holds. Returns whether that was once too often."""
        self._left_behind += 1
        if too_often := self._left_behind > LEFT_BEHIND:
            log.critical("the %s hung %d times: restart this PoP", self._name, self._left_behind)
        return too_often

    async def _clear(self, core: C) -> None:
        """Close a core. Whoever waits for this may be cancelled: it goes on, and `close` waits for its end."""
        self._clearing = asyncio.create_task(core.close(), name=f"end of the {self._name}")
        await asyncio.wait({self._clearing}, timeout=CLEAR_S)
        if not self._clearing.done():
            log.error("the %s could not be cleared away within %g s: it is left where it is", self._name, CLEAR_S)
        elif error := self._clearing.exception():
            log.error("what is left of the %s could not be cleared away", self._name, exc_info=error)

    async def _again(self, pause_s: float) -> tuple[C, float] | None:
        """The next core, and the pause before another; None: there will be none."""
        failed = 0
        while True:
            log.info("the %s is started again in %.0f s", self._name, pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            try:
                async with asyncio.timeout(self._start_s):
                    return await self._make(), pause_s
            except TimeoutError as error:
                log.error("%s", str(error) or f"the {self._name} was not ready within {self._start_s:g} s")
                if self._leave_behind():
                    return None
            except EngineError as error:
                log.error("%s", error)
            except Exception:
                log.exception("the %s could not be started", self._name)
            failed += 1
            if failed >= STAYS and self._hint:
                log.error("the %s could not be started %d times: %s", self._name, failed, self._hint)
