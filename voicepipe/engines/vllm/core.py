"""One AsyncLLM with its processes: loaded, ready, and asked for replies."""

import asyncio
import itertools
import logging
import math
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from voicepipe.config.engine_config import VllmConfig
from voicepipe.engines import needed_models
from voicepipe.engines.base import Delta, Message, Prompt
from voicepipe.engines.failures import HELLO
from voicepipe.engines.lived import Lived
from voicepipe.engines.owing import Owing
from voicepipe.engines.packages import INSTALLS
from voicepipe.engines.vllm.arguments import arguments, check_parser
from voicepipe.engines.vllm.start import EngineStart, end, hung, lower
from voicepipe.environment import default_variables
from voicepipe.errors import EngineBusy, EngineDead, EngineError, EngineMissing, RequestRefused, VoicepipeError

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM

    from voicepipe.engines.vllm.chats import Chats
    from voicepipe.engines.vllm.reading import Output, ReplyReading

log = logging.getLogger(__name__)
STALL_S, CHAR_S = 10.0, 0.002
"""Without a token of any request for STALL_S, and so much for each character that is read (of the prompt and of its
tools), it hangs."""
SHUTDOWN_S = 10.0
"""vLLM has so long to end by itself; then its processes are killed."""
CONFIRMED, SPECULATIVE, WARM = 0, 1, 2
"""Priorities: vLLM's scheduler serves the lower first."""
ENVIRONMENT = {
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # A fork would copy the locks that threads of other engines hold.
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
}
"""Before vLLM is imported."""


class VllmCore:
    """Implements `life.Core`."""

    def __init__(self, llm: "AsyncLLM", chats: "Chats", start: EngineStart[Any], stall_s: float = STALL_S) -> None:
        self._stall_s = stall_s
        self._owing = Owing(Lived())
        self._trial: asyncio.Task[None] | None = None
        self.llm = llm
        self.chats = chats
        self.processes = start.family()
        self._guard = start.guard
        self._guard.watch(self.processes)
        self._ids = itertools.count()

    @property
    def errored(self) -> bool:
        """Its process ended, or no token has come of any request for too long."""
        return bool(self.llm.errored) or not self._owing.alive

    @property
    def hung(self) -> bool:
        """Never: what hangs is a process, which `close` kills."""
        return False

    async def close(self) -> None:
        if self._trial:
            self._trial.cancel()
        if handler := self.llm.output_handler:
            handler.cancel()  # It would report the end as a failure.
        # A thread of its own, which Python does not wait for at its end: the processes that it talks to may hang.
        ending = threading.Thread(target=self._shut_down, name="vllm-shutdown", daemon=True)
        ending.start()
        try:
            self._give_up()
            await asyncio.to_thread(ending.join, SHUTDOWN_S)
        finally:
            await asyncio.to_thread(self._end)

    def _give_up(self) -> None:
        """Tell all who wait. vLLM's handler does so when its process ends, but not when it is cancelled."""
        from vllm.v1.engine.exceptions import EngineDeadError

        self.llm.output_processor.propagate_error(EngineDeadError())

    def _shut_down(self) -> None:
        try:
            self.llm.shutdown()
        except Exception:
            log.exception("vLLM did not end by itself; its processes are killed")

    def _end(self) -> None:
        end(self.processes)
        self._guard.end()

    async def reply(self, prompt: Prompt, priority: int) -> AsyncGenerator[Delta, None]:
        """Raises EngineDead, EngineBusy, EngineError. Closing it aborts the request in the engine."""
        with self._explained():
            request = await self.chats.request(prompt)
            asked = self._asked(request.inputs, request.params, priority)
            async with aclosing(self._watched(asked, len(f"{prompt.messages}{prompt.tools}"))) as outputs:
                async for output in outputs:
                    for delta in self._read(request.reading, output.outputs[0]):
                        yield delta

    async def ends(self, prompt: Prompt) -> float:
        """Probability that the caller's turn, the last of the prompt, ends after its words: of the model's own token
        for that, out of the likeliest ones. Raises EngineDead, EngineBusy, EngineError."""
        with self._explained():
            question = await self.chats.question(prompt)
            # Before speculative replies: later than the words the answer is of use for 30 ms.
            async with aclosing(self._asked(question.inputs, question.params, CONFIRMED)) as outputs:
                likely = [output async for output in outputs][-1].outputs[0].logprobs[0]
            return math.exp(likely[question.end].logprob) if question.end in likely else 0.0

    def _asked(self, inputs: Any, params: Any, priority: int) -> AsyncGenerator[Any, None]:
        outputs: AsyncGenerator[Any, None]
        outputs = self.llm.generate(inputs, params, str(next(self._ids)), priority=priority)
        return outputs

    async def _watched(self, outputs: AsyncGenerator[Any, None], chars: int) -> AsyncGenerator[Any, None]:
        """`outputs`; that they come is noted. If they are given up before any came, something small is asked for."""
        within_s = self._stall_s + CHAR_S * chars
        try:
            async with aclosing(outputs):
                while (output := await self._next(outputs, within_s)) is not None:
                    self._owing.moved()
                    within_s = self._stall_s
                    yield output
            self._owing.worked()
        finally:
            if self._owing.forgotten and self._trial is None:
                self._trial = asyncio.create_task(self._try(), name="trial of vLLM")

    def _read(self, reading: "ReplyReading", output: "Output") -> Iterator[Delta]:
        try:
            yield from reading.take(output)
        except EngineError:  # vLLM says itself that it failed.
            self._owing.failed()
            raise

    async def _next(self, outputs: AsyncGenerator[Any, None], within_s: float) -> Any | None:
        from vllm.exceptions import GracefulHTTPError

        try:
            return await self._owing.next(outputs, within_s)
        except (ValueError, GracefulHTTPError):
            raise  # It does not take this prompt, or no more of them.
        except Exception:
            self._owing.failed()
            raise

    async def _try(self) -> None:
        try:
            async with aclosing(self.reply(Prompt((Message("user", HELLO),), max_tokens=1), CONFIRMED)) as deltas:
                async for _ in deltas:
                    pass
        except VoicepipeError as error:
            log.warning("vLLM does not answer a trial: %s", error)
            if not isinstance(error, EngineBusy):
                self._owing.tried()
        finally:
            self._trial = None

    @contextmanager
    def _explained(self) -> Iterator[None]:
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
                raise EngineDead("The language model's process ended in the middle of a reply: see the log.") from None
            raise EngineError(f"vLLM could not reply: {error.__cause__ or error}") from error


async def load(config: VllmConfig, ready: Callable[[VllmCore], Awaitable[None]]) -> VllmCore:
    """A core that `ready` has warmed up. Raises EngineError; then, and when cancelled, its processes are gone."""
    args = await asyncio.to_thread(_arguments, config)
    start = EngineStart(partial(_build, config, args))
    core: VllmCore | None = None
    try:
        async with asyncio.timeout(config.start_timeout_s):
            llm, chats = await start.result()
            core = await asyncio.to_thread(VllmCore, llm, chats, start, config.stall_s)
            if _on_a_cpu():
                lower(core.processes)
            await ready(core)
            return core
    except BaseException as error:
        await start.give_up()
        if core is not None:
            await core.close()
        if isinstance(error, TimeoutError):
            raise EngineError(hung(config)) from None
        raise


def _on_a_cpu() -> bool:
    from vllm.platforms import current_platform

    on_a_cpu: bool = current_platform.is_cpu()
    return on_a_cpu


def _arguments(config: VllmConfig) -> dict[str, Any]:
    """Those of AsyncEngineArgs; imports vLLM, which takes seconds. Raises EngineError."""
    if not config.model:
        raise EngineError("vllm.model is empty: set it to a model's directory, or its name on the hub.")
    paths = {model.key: str(model.local()) for model in needed_models.vllm(config)}
    default_variables(ENVIRONMENT | {"VLLM_ENGINE_READY_TIMEOUT_S": str(config.start_timeout_s)})
    try:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.reasoning import ReasoningParserManager
        from vllm.tool_parsers import ToolParserManager

        import voicepipe.engines.vllm.chats  # noqa: F401
    except (ImportError, OSError) as error:  # OSError: a library of CUDA that ctypes does not find
        raise EngineMissing(
            f"vLLM cannot be imported ({error}): pip install {INSTALLS['vllm']}, see pops/gpu.md."
        ) from error
    check_parser("vllm.tool_call_parser", config.tool_call_parser, ToolParserManager.list_registered())
    reasoning = config.args.get("reasoning_parser", "")
    check_parser("vllm.args.reasoning_parser", reasoning, ReasoningParserManager.list_registered())
    return arguments(config, paths, {field.name for field in fields(AsyncEngineArgs)})


def _build(config: VllmConfig, args: dict[str, Any]) -> "tuple[AsyncLLM, Chats]":
    """Blocks until the model is loaded. Raises EngineError."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    from voicepipe.engines.vllm.chats import Chats

    try:
        asked = AsyncEngineArgs(**args)
        vllm_config = asked.create_engine_config()
    except Exception as error:
        given = ", ".join(f"{name} = {value!r}" for name, value in args.items())
        raise EngineError(f"vLLM refuses its arguments ({error}): {given}") from error
    try:
        llm = AsyncLLM.from_vllm_config(
            vllm_config, enable_log_requests=asked.enable_log_requests, disable_log_stats=asked.disable_log_stats
        )
    except Exception as error:
        raise EngineError(f"vLLM did not start, and its log says why: {error}") from error
    try:
        return llm, Chats(llm, config)
    except Exception as error:
        llm.shutdown()
        raise EngineError(f"The parsers that vllm.tool_call_parser names do not fit the model: {error}") from error
