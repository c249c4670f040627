"""The real vLLM with the nano LLM: `make test-vllm` runs this in an environment of its own, on any CPU."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client import REGISTRY

from tests.engines.contract import ToolContract, texts
from tests.support.waiting import until
from voicepipe.agent import Agent
from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.config.engine_config import VllmConfig
from voicepipe.engines.base import Message, Prompt
from voicepipe.engines.llm.vllm.vllm_llm import VllmLlm

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]
NANO = Path(__file__).parents[1] / "models" / "nano-llm"
AT_A_TIME = 4
BLOCK = 32
"""Tokens of the prefix cache's unit."""
AGENT = Agent("desk", instructions="You answer the phone of a restaurant. " * 30)
SYSTEM = Message("system", AGENT.instructions)
HOURS = Prompt((Message("user", "what are your opening hours"),))
LONG = Prompt((Message("user", "tell me all about your menu"),), max_tokens=200)


def configured(**changes: Any) -> VllmConfig:
    args = {"enforce_eager": True, "dtype": "float32", "block_size": BLOCK, "max_num_seqs": AT_A_TIME}
    more = changes.pop("args", {})
    fields = {"model": str(NANO), "max_model_len": 1024, "kv_cache_memory_bytes": 64 << 20, "max_tokens": 48}
    return VllmConfig(**{**fields, "tool_call_parser": "hermes", "args": args | more, **changes})


@asynccontextmanager
async def started(config: VllmConfig) -> AsyncIterator[VllmLlm]:
    llm = VllmLlm(config)
    await llm.start()
    try:
        yield llm
    finally:
        await llm.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[VllmLlm]:
    """One for all tests: it takes half a minute."""
    async with started(configured()) as llm:
        yield llm


def metric(name: str) -> float:
    """vLLM's own, summed over its engines."""
    samples = [sample for family in REGISTRY.collect() for sample in family.samples if sample.name == f"vllm:{name}"]
    assert samples, name
    return sum((sample.value for sample in samples), 0.0)


class TestVllm(ToolContract):
    @staticmethod
    def factory() -> VllmLlm:
        return VllmLlm(configured())

    @pytest.fixture
    def llm(self, engine: VllmLlm) -> VllmLlm:
        return engine


async def test_sixteen_turns_with_aborts_leave_no_request_behind(engine: VllmLlm) -> None:
    async def turn(number: int) -> int:
        said = 0
        deltas = engine.generate(Prompt((Message("user", f"table for {number}, please"),), max_tokens=40))
        async for _ in deltas:
            said += 1
            if number % 4 == 0:
                break
        await deltas.aclose()
        return said

    turns = [asyncio.ensure_future(turn(number)) for number in range(16)]
    await asyncio.wait(turns, timeout=0.3)
    for task in turns[1::4]:
        task.cancel()
    done = await asyncio.gather(*turns, return_exceptions=True)
    assert all(said for said in done if isinstance(said, int))
    await texts(engine, HOURS)  # vLLM counts when it works
    assert engine.core.llm.get_num_unfinished_requests() == 0
    assert metric("num_requests_running") == metric("num_requests_waiting") == 0


async def test_confirmed_turns_go_before_speculative_ones(engine: VllmLlm) -> None:
    first: list[str] = []

    async def turn(name: str, prompt: Prompt) -> None:
        async for _ in engine.generate(prompt):
            if name not in first:
                first.append(name)

    busy = [asyncio.create_task(turn(f"busy {number}", LONG)) for number in range(AT_A_TIME)]
    await until(lambda: len(first) == AT_A_TIME)
    guesses = [asyncio.create_task(turn("guess", Prompt(HOURS.messages, speculative=True))) for _ in range(AT_A_TIME)]
    confirmed = asyncio.create_task(turn("confirmed", HOURS))
    await asyncio.gather(*busy, *guesses, confirmed)
    assert first[AT_A_TIME:] == ["confirmed", "guess"]


async def test_the_agents_prompt_is_in_the_prefix_cache_from_the_start(engine: VllmLlm) -> None:
    await engine.warm(Prompt((SYSTEM,), agent=AGENT))
    hits = metric("prefix_cache_hits_total")
    await texts(engine, Prompt((SYSTEM, *HOURS.messages)))
    assert metric("prefix_cache_hits_total") - hits >= 4 * BLOCK


async def test_a_conversation_longer_than_the_model_reads_goes_on(engine: VllmLlm) -> None:
    turns = [(Message("user", f"is dish {dish} good"), Message("assistant", "It is.")) for dish in range(100)]
    assert await texts(engine, Prompt((SYSTEM, *chain(*turns), *HOURS.messages)))
    with pytest.raises(EngineError, match="instructions"):
        await texts(engine, Prompt((Message("system", "word " * 5000), *HOURS.messages)))


async def test_two_ranks_say_what_one_says(engine: VllmLlm, monkeypatch: pytest.MonkeyPatch) -> None:
    cores = sorted(os.sched_getaffinity(0))
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", f"{cores[0]}|{cores[-1]}")
    said = ["what are your opening hours", "a table for two on friday", "where are you", "do you have vegan dishes"]
    prompts = [Prompt((SYSTEM, Message("user", words))) for words in said]
    async with started(configured(tensor_parallel_size=2)) as both:
        for prompt in prompts:
            assert_same(await greedy(engine, prompt), await greedy(both, prompt))
        assert len(both.core.processes) == 3
        both.core.processes[-1].kill()
        await until(lambda: not both.alive)
        with pytest.raises(EngineDead):
            await texts(both, HOURS)


Step = tuple[int, dict[int, Any]]
"""A token, and the log-probabilities of the likeliest ones in its place."""
ids = count()


async def greedy(llm: VllmLlm, prompt: Prompt) -> list[Step]:
    from vllm import SamplingParams

    request = await llm.core.chats.request(prompt)
    params = SamplingParams(temperature=0, max_tokens=32, logprobs=5)
    outputs = [output async for output in llm.core.llm.generate(request.inputs, params, f"greedy {next(ids)}")]
    return list(zip(outputs[-1].outputs[0].token_ids, outputs[-1].outputs[0].logprobs, strict=True))


def assert_same(one: list[Step], other: list[Step]) -> None:
    """The same tokens, up to two that are as likely as each other."""
    for (token, likely), (instead, _) in zip(one, other, strict=False):
        if token != instead:
            assert likely[token].logprob - likely[instead].logprob < 1e-3
            return
    assert len(one) == len(other)


async def test_an_interrupt_at_the_terminal_is_left_to_us(engine: VllmLlm) -> None:
    for process in engine.core.processes:
        process.send_signal(signal.SIGINT)
    await asyncio.sleep(1)
    assert engine.alive and await texts(engine, HOURS)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"start_timeout_s": 1}, "not ready after 1 s"),
        ({"args": {"max_num_seq": 1}}, "did you mean max_num_seqs"),
        ({"args": {"max_num_seqs": "few"}}, "max_num_seqs"),
        ({"tool_call_parser": "hermez"}, "did you mean hermes"),
        ({"model": "/nowhere"}, "there is no '/nowhere'"),
        ({"model": ""}, "vllm.model is empty"),
    ],
)
async def test_a_start_that_fails_says_why(changes: dict[str, Any], said: str) -> None:
    """... and leaves no process behind."""
    before = multiprocessing.active_children()
    with pytest.raises(EngineError, match=said):
        await VllmLlm(configured(**changes)).start()
    await until(lambda: set(multiprocessing.active_children()) <= set(before))


async def test_an_engine_that_is_killed_comes_back(engine: VllmLlm) -> None:
    before = "".join(await texts(engine, HOURS))  # A slow machine has several tokens in one piece.
    await engine.warm(Prompt((SYSTEM,), agent=AGENT))
    deltas = engine.generate(LONG)
    await anext(deltas)
    engine.core.processes[0].kill()
    with pytest.raises(EngineDead):
        async for _ in deltas:
            pass
    await until(lambda: not engine.alive)
    with pytest.raises(EngineDead):
        await texts(engine, HOURS)
    await until(lambda: engine.alive, 300)
    assert engine.restarts == 1
    assert "".join(await texts(engine, HOURS)) == before
    hits = metric("prefix_cache_hits_total")
    await texts(engine, Prompt((SYSTEM, *HOURS.messages)))
    assert metric("prefix_cache_hits_total") - hits >= 4 * BLOCK
