"""What an address costs a turn: the time to the first words of one model, asked in this process and at servers of
this machine, by turns.

`make bench-address` (ARGS="--rounds 60 --llama-server PATH") prints a table.
"""

import argparse
import asyncio
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.gpu_engines import model_servers, test_vllm
from voicepipe.config.engine_config import OpenAiConfig
from voicepipe.engines.base import Llm, Message, Prompt
from voicepipe.engines.llm.openai import OpenAiLlm
from voicepipe.engines.llm.vllm.vllm_llm import VllmLlm

PAUSE_S = 0.3
"""Between two requests: the engines share the cores."""
WARM = 5
"""Rounds that do not count."""


@dataclass(slots=True)
class Way:
    """A way to one model."""

    name: str
    llm: Llm
    first_ms: list[float] = field(default_factory=list)
    whole_ms: list[float] = field(default_factory=list)
    words: set[str] = field(default_factory=set)

    async def ask(self, prompt: Prompt) -> None:
        began, first, said = time.perf_counter(), 0.0, ""
        async for delta in self.llm.generate(prompt):
            if isinstance(delta, str) and delta:
                first = first or time.perf_counter()
                said += delta
        self.first_ms.append(1000 * (first - began))
        self.whole_ms.append(1000 * (time.perf_counter() - began))
        self.words.add(said)


async def measured(rounds: int, llama_server: str) -> list[Way]:
    """All ways, each asked the same, in another order each time."""
    async with AsyncExitStack() as stack:
        ways = [Way("vLLM in the PoP's process", VllmLlm(test_vllm.configured(max_model_len=4096)))]
        servers: dict[str, Callable[[], AbstractContextManager[str]]] = {"vLLM's server": model_servers.vllm}
        if llama_server:
            servers["llama.cpp's server"] = partial(model_servers.llama_cpp, llama_server)
        for name, served in servers.items():
            url = await asyncio.to_thread(stack.enter_context, served())
            ways.append(Way(name, OpenAiLlm(OpenAiConfig(base_url=url, max_tokens=48))))
        for way in ways:
            await way.llm.start()
            stack.push_async_callback(way.llm.close)
        for number in range(WARM + rounds):
            prompt = Prompt((test_vllm.SYSTEM, Message("user", f"a table for {number + 2} at seven, please")))
            for way in ways[number % len(ways) :] + ways[: number % len(ways)]:
                await way.ask(prompt)
                await asyncio.sleep(PAUSE_S)
    return ways


def table(ways: Sequence[Way]) -> Table:
    made = Table("way", "first words p50, ms", "p95", "more than in process, p50", "whole reply p50", "replies")
    own = ways[0].first_ms[WARM:]
    for way in ways:
        first = way.first_ms[WARM:]
        more = median(there - here for there, here in zip(first, own, strict=True))
        made.add_row(
            way.name, f"{median(first):.1f}", f"{np.percentile(first, 95):.1f}", f"{more:.1f}",
            f"{median(way.whole_ms[WARM:]):.0f}", "the same" if way.words == ways[0].words else "others",
        )  # fmt: skip
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--llama-server", default=shutil.which("llama-server") or "", help="llama.cpp's program")
    args = parser.parse_args()
    Console().print(table(asyncio.run(measured(args.rounds, args.llama_server))))


if __name__ == "__main__":
    main()
