"""The language model by vLLM: AsyncLLM in this process, EngineCore and one worker a GPU as its children."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from voicepipe.agent import Agent, ToolSpec
from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.config.engine_config import VllmConfig
from voicepipe.engines.base import Answering, Delta, Message, Prompt
from voicepipe.engines.gpu_placement import group
from voicepipe.engines.hosting.supervised import SupervisedEngine
from voicepipe.engines.llm.vllm import adapters, process
from voicepipe.engines.llm.vllm.arguments import arguments, check_parser
from voicepipe.engines.llm.vllm.process import STALL_S, VllmProcess
from voicepipe.engines.llm.vllm.start import EngineStart, hung
from voicepipe.engines.weights import needed_models
from voicepipe.engines.weights.needed_models import LORA

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM

    from voicepipe.engines.llm.vllm.chats import Chats
    from voicepipe.engines.llm.vllm.reading import CompletionOutput, ReplyReading

log = logging.getLogger(__name__)
CONFIRMED, SPECULATIVE, WARM = 0, 1, 2
"""Priorities: vLLM's scheduler serves the lower first."""
FLAG = {"type": "object", "properties": {"flag": {"type": "boolean"}}, "required": ["flag"]}
TOOL = ToolSpec("warm_up", "Does nothing.", FLAG)
HELLO = (Message("user", "Hello."),)
KINDS = (
    Prompt(HELLO, max_tokens=8),
    *(Prompt(HELLO, (TOOL,), tool_choice=choice, max_tokens=8) for choice in ("auto", "required", TOOL.name)),
)
"""Every kind of request: the first one of its kind compiles for seconds."""


class VllmLlm(SupervisedEngine["VllmCore"]):
    """The language engine `vllm`: a model in vLLM with its LoRA adapters, for all calls. Implements `base.Llm` and
    `base.ChoosesAgents`."""

    def __init__(self, config: VllmConfig) -> None:
        super().__init__("language model", partial(load, config, self._ready), start_s=None)
        self._config = config
        self._beginnings: dict[str, Prompt] = {}
        """The beginning of each agent's prompts, by the agent's name."""

    def answering(self, agent: Agent) -> Answering:
        return adapters.answering(self._config, agent)

    async def warm(self, prompt: Prompt) -> None:
        if prompt.agent is not None:
            self._beginnings[prompt.agent.name] = prompt
        await _have_read(self.core, prompt)

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        priority = SPECULATIVE if prompt.speculative else CONFIRMED
        async with aclosing(self.core.reply(prompt, priority)) as deltas:
            async for delta in deltas:
                yield delta

    async def _ready(self, core: "VllmCore") -> None:
        for prompt in KINDS:
            await _have_read(core, prompt)
        for name, prompt in self._beginnings.items():
            try:
                await _have_read(core, prompt)
            except EngineDead:
                raise
            except EngineError as error:  # One agent, too long perhaps, is no reason to be without the model.
                log.error("agent %s is not warmed up: %s", name, error)


async def _have_read(core: "VllmCore", prompt: Prompt, priority: int = WARM) -> None:
    """Have the model read the prompt, so that it is in the prefix cache."""
    short = replace(prompt, max_tokens=prompt.max_tokens or 1, speculative=False)
    async with aclosing(core.reply(short, priority)) as deltas:
        async for _ in deltas:
            pass


class VllmCore(VllmProcess):
    """vLLM with a language model, and its chat template. Implements `supervised.Core`."""

    def __init__(self, llm: "AsyncLLM", chats: "Chats", start: EngineStart[Any], stall_s: float = STALL_S) -> None:
        super().__init__("language model", llm, start, stall_s)
        self.chats = chats

    async def reply(self, prompt: Prompt, priority: int) -> AsyncGenerator[Delta, None]:
        """Raises EngineDead, EngineBusy, EngineError. Closing it aborts the request in the engine."""
        with self.explained():
            request = await self.chats.request(prompt)
            chars = len(f"{prompt.messages}{prompt.tools}")
            async with aclosing(self.outputs(request.inputs, request.params, priority, chars, request.lora)) as outputs:
                async for output in outputs:
                    for delta in self._read(request.reading, output.outputs[0]):
                        yield delta

    async def small(self) -> None:
        await _have_read(self, Prompt(HELLO), CONFIRMED)

    def _read(self, reading: "ReplyReading", output: "CompletionOutput") -> Iterator[Delta]:
        try:
            yield from reading.take(output)
        except EngineError:  # vLLM says itself that it failed.
            self._liveness.failed()
            raise


async def load(config: VllmConfig, ready: Callable[[VllmCore], Awaitable[None]]) -> VllmCore:
    """A core that `ready` has warmed up. Raises EngineError; then, and when cancelled, its processes are gone."""
    args = await asyncio.to_thread(_arguments, config)

    def made(built: "tuple[AsyncLLM, Chats]", start: EngineStart[Any]) -> VllmCore:
        return VllmCore(*built, start, config.stall_s)

    late = partial(hung, "vllm", config.start_timeout_s, group(config), config.hosts)
    return await process.started(partial(_build, config, args), made, ready, config.start_timeout_s, late)


def _arguments(config: VllmConfig) -> dict[str, Any]:
    """The arguments of AsyncEngineArgs; imports vLLM, which takes seconds. Raises EngineError."""
    if not config.model:
        raise EngineError("vllm.model is empty: set it to a model's directory, or its name on the hub.")
    paths = {model.key: str(model.local()) for model in needed_models.vllm(config)}
    process.prepare(config.start_timeout_s)
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    import voicepipe.engines.llm.vllm.chats  # noqa: F401

    check_parser("vllm.tool_call_parser", config.tool_call_parser, ToolParserManager.list_registered())
    reasoning = config.args.get("reasoning_parser", "")
    check_parser("vllm.args.reasoning_parser", reasoning, ReasoningParserManager.list_registered())
    return arguments(config, paths, {field.name for field in fields(AsyncEngineArgs)})


def _build(config: VllmConfig, args: dict[str, Any]) -> "tuple[AsyncLLM, Chats]":
    """Blocks until the model is loaded. Raises EngineError."""
    from voicepipe.engines.llm.vllm.chats import Chats

    models = needed_models.vllm(config)
    lora = {model.key.removeprefix(LORA): str(model.local()) for model in models if model.key.startswith(LORA)}
    llm = process.build(args)
    try:
        return llm, Chats(llm, config, lora)
    except Exception as error:
        llm.shutdown()
        raise EngineError(f"The parsers that vllm.tool_call_parser names do not fit the model: {error}") from error
