"""The language model by vLLM: AsyncLLM in this process, EngineCore and one worker a GPU as its children."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from voicepipe.agent import ToolSpec
from voicepipe.config.engine_config import VllmConfig
from voicepipe.engines.base import Delta, Message, Prompt
from voicepipe.engines.life import Life
from voicepipe.engines.vllm.core import CONFIRMED, SPECULATIVE, WARM, VllmCore, load
from voicepipe.errors import EngineDead, EngineError

log = logging.getLogger(__name__)
FLAG = {"type": "object", "properties": {"flag": {"type": "boolean"}}, "required": ["flag"]}
TOOL = ToolSpec("warm_up", "Does nothing.", FLAG)
HELLO = (Message("user", "Hello."),)
KINDS = (
    Prompt(HELLO, max_tokens=8),
    *(Prompt(HELLO, (TOOL,), tool_choice=choice, max_tokens=8) for choice in ("auto", "required", TOOL.name)),
)
"""Every kind of request: the first one of its kind compiles for seconds."""


class VllmLlm(Life[VllmCore]):
    """Implements `base.Llm` and `base.Reader`."""

    def __init__(self, config: VllmConfig, *, reads: bool = False) -> None:
        """`reads`: `ends` will be asked, and is warmed up as well."""
        super().__init__("language model", partial(load, config, self._ready), start_s=None)
        self._reads = reads
        self._beginnings: dict[str, Prompt] = {}
        """By agent: what its prompts begin with."""

    async def warm(self, prompt: Prompt) -> None:
        if prompt.agent is not None:
            self._beginnings[prompt.agent.name] = prompt
        await _read(self.core, prompt)

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        priority = SPECULATIVE if prompt.speculative else CONFIRMED
        async with aclosing(self.core.reply(prompt, priority)) as deltas:
            async for delta in deltas:
                yield delta

    async def ends(self, prompt: Prompt) -> float:
        return await self.core.ends(prompt)

    async def _ready(self, core: VllmCore) -> None:
        for prompt in KINDS:
            await _read(core, prompt)
        for name, prompt in self._beginnings.items():
            try:
                await _read(core, prompt)
            except EngineDead:
                raise
            except EngineError as error:  # One agent, too long perhaps, is no reason to be without the model.
                log.error("agent %s is not warmed up: %s", name, error)
        if self._reads:
            await core.ends(KINDS[0])


async def _read(core: VllmCore, prompt: Prompt) -> None:
    """Have the model read it, so that it is in the prefix cache."""
    short = Prompt(prompt.messages, prompt.tools, prompt.tool_choice, max_tokens=prompt.max_tokens or 1)
    async with aclosing(core.reply(short, WARM)) as deltas:
        async for _ in deltas:
            pass
