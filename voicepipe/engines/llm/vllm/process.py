"""One AsyncLLM with its processes, whatever its tokens are: made, watched, asked and ended."""

import asyncio
import itertools
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from voicepipe.base.environment import default_variables, put_variable, variable
from voicepipe.base.errors import EngineBusy, EngineDead, EngineError, EngineMissing, RequestRefused, VoicepipeError
from voicepipe.base.process_clock import ProcessClock
from voicepipe.engines.hosting.liveness import Liveness
from voicepipe.engines.llm.vllm.start import EngineStart, RankWatch, end, lower
from voicepipe.engines.packages import INSTALLS

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM

log = logging.getLogger(__name__)
STALL_S, CHAR_S = 10.0, 0.002
"""Without a token of any request for STALL_S, and so much for each character that is read (of the prompt and of its
tools), it hangs."""
SHUTDOWN_S = 10.0
"""vLLM has so long to end by itself; then its processes are killed."""
ENVIRONMENT = {
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # A fork would copy the locks that threads of other engines hold.
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
}
"""Environment variables that are set before vLLM is imported."""


class VllmProcess:
    """A vLLM engine with its processes. Implements `supervised.Core`; a subclass defines `small`. `name`: what errors
    call it."""

    def __init__(self, name: str, llm: "AsyncLLM", start: EngineStart[Any], stall_s: float = STALL_S) -> None:
        self._name = name
        self._stall_s = stall_s
        self._liveness = Liveness(ProcessClock())
        self._trial: asyncio.Task[None] | None = None
        self.llm = llm
        self.processes = start.family()
        self._ranks = RankWatch(self.processes)
        self._guard = start.guard
        self._guard.watch(self.processes)
        self._ids = itertools.count()

    @property
    def errored(self) -> bool:
        """Whether a process of it ended, or no token has come of any request for too long."""
        return bool(self.llm.errored) or self._ranks.lost or not self._liveness.alive

    @property
    def hung(self) -> bool:
        """Always False: only a process can hang, and `close` kills it."""
        return False

    async def small(self) -> None:
        """Ask for something that a healthy engine answers at once. Raises EngineError."""
        raise NotImplementedError

    async def close(self) -> None:
        if self._trial:
            self._trial.cancel()
        if handler := self.llm.output_handler:
            handler.cancel()  # It would report the end as a failure.
        if self.errored:  # What still runs waits for what does not, and would be given seconds to end by itself.
            await asyncio.to_thread(end, self.processes)
        # A thread of its own, which Python does not wait for at its end: the processes that it talks to may hang.
        ending = threading.Thread(target=self._shut_down, name="vllm-shutdown", daemon=True)
        ending.start()
        try:
            self._give_up()
            await asyncio.to_thread(ending.join, SHUTDOWN_S)
        finally:
            await asyncio.to_thread(self._end)

    def _give_up(self) -> None:
        """Fail all who wait. vLLM's handler does so when its process ends, but not when it is cancelled."""
        from vllm.v1.engine.exceptions import EngineDeadError

        self.llm.output_processor.propagate_error(EngineDeadError())

    def _shut_down(self) -> None:
        try:
            self.llm.shutdown()
        except Exception:
            log.exception("vLLM did not end by itself; its processes are killed")

    def _end(self) -> None:
        end(self.processes)
        self._ranks.close()
        self._guard.end()

    async def outputs(
        self, inputs: Any, params: Any, priority: int, chars: int, lora: Any = None
    ) -> AsyncGenerator[Any, None]:
        """The outputs of a new request of so many characters; that they come is noted. `lora`: vLLM's
        LoRARequest. Closing it aborts the request in the engine. If that is done before any came, something small is
        asked for."""
        within_s = self._stall_s + CHAR_S * chars
        try:
            asked = self.llm.generate(inputs, params, str(next(self._ids)), lora_request=lora, priority=priority)
            async with aclosing(asked) as outputs:
                while (output := await self._next(outputs, within_s)) is not None:
                    self._liveness.moved()
                    within_s = self._stall_s
                    yield output
            self._liveness.worked()
        finally:
            if self._liveness.needs_trial and self._trial is None:
                self._trial = asyncio.create_task(self._try(), name="trial of vLLM")

    async def _next(self, outputs: AsyncGenerator[Any, None], within_s: float) -> Any | None:
        from vllm.exceptions import GracefulHTTPError

        try:
            return await self._liveness.next(outputs, within_s)
        except (ValueError, GracefulHTTPError):
            raise  # It does not take this prompt, or no more of them.
        except Exception:
            self._liveness.failed()
            raise

    async def _try(self) -> None:
        try:
            await self.small()
        except VoicepipeError as error:
            log.warning("vLLM does not answer a trial: %s", error)
            if not isinstance(error, EngineBusy):
                self._liveness.tried()
        finally:
            self._trial = None

    @contextmanager
    def explained(self) -> Iterator[None]:
        """vLLM's errors become ours."""
        from vllm.exceptions import GracefulHTTPError

        try:
            yield
        except VoicepipeError:
            raise
        except GracefulHTTPError as error:
            raise EngineBusy(f"vLLM takes no more requests: {error}") from None
        except ValueError as error:  # vLLM's word for a prompt, a tool or a grammar that it cannot use
            raise RequestRefused(f"vLLM does not take the request: {error.__cause__ or error}") from error
        except Exception as error:  # also what templates and parsers raise, which are the model's
            if self.errored:
                raise EngineDead(f"The {self._name}'s process ended in the middle of a reply: see the log.") from None
            raise EngineError(f"vLLM could not reply: {error.__cause__ or error}") from error


_building = asyncio.Lock()
"""vLLM's builds take turns. So it is known whose process is whose, and a GPU's free memory does not change while vLLM
looks at it."""
B = TypeVar("B")
P = TypeVar("P", bound=VllmProcess)


async def started(
    build: Callable[[], B],
    made: Callable[[B, EngineStart[B]], P],
    ready: Callable[[P], Awaitable[None]],
    within_s: float,
    late: Callable[[], str],
) -> P:
    """What `made` makes of what `build` returns, both on threads, once `ready` has warmed it up. One build at a time.
    Raises EngineError: `late`, it took longer than `within_s`. Then, and when cancelled, its processes are gone."""
    async with AsyncExitStack() as turn:
        await turn.enter_async_context(_building)
        start = EngineStart(build)
        core: P | None = None
        try:
            async with asyncio.timeout(within_s):
                built = await start.result()
                await turn.aclose()
                core = await asyncio.to_thread(made, built, start)
                if _on_a_cpu():
                    lower(core.processes)
                await ready(core)
                return core
        except BaseException as error:
            await start.give_up()
            if core is not None:
                await core.close()
            if isinstance(error, TimeoutError):
                raise EngineError(late()) from None
            raise


def _on_a_cpu() -> bool:
    from vllm.platforms import current_platform

    on_a_cpu: bool = current_platform.is_cpu()
    return on_a_cpu


READY = "VLLM_ENGINE_READY_TIMEOUT_S"
_importing = threading.Lock()
"""Two threads that import what imports one another may each get a half of it."""
_patience_s = 0
"""The longest start that was asked for: vLLM has one setting for all."""


def prepare(start_timeout_s: int) -> None:
    """Import vLLM, which takes seconds. Raises EngineMissing."""
    global _patience_s
    try:
        with _importing:
            default_variables(ENVIRONMENT)
            if variable(READY) in ("", str(_patience_s)):
                _patience_s = max(_patience_s, start_timeout_s)
                put_variable(READY, str(_patience_s))
            import vllm.engine.arg_utils
            import vllm.v1.engine.async_llm  # noqa: F401
    except (ImportError, OSError) as error:  # OSError: a library of CUDA that ctypes does not find
        raise EngineMissing(
            f"vLLM cannot be imported ({error}): pip install {INSTALLS['vllm']}, see pops/gpu.md."
        ) from error


def build(args: dict[str, Any], *, stats: bool = True) -> "AsyncLLM":
    """Blocks until the model is loaded. `stats`: its metrics are this process's. Raises EngineError."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    try:
        asked = AsyncEngineArgs(**args)
        vllm_config = asked.create_engine_config()
    except Exception as error:
        given = ", ".join(f"{name} = {value!r}" for name, value in args.items())
        raise EngineError(f"vLLM refuses its arguments ({error}): {given}") from error
    try:
        return AsyncLLM.from_vllm_config(
            vllm_config,
            enable_log_requests=asked.enable_log_requests,
            disable_log_stats=asked.disable_log_stats or not stats,
        )
    except Exception as error:
        raise EngineError(f"vLLM did not start, and its log says why: {error}") from error
