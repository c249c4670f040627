"""Starts of vLLM take turns, and know their own processes."""

import asyncio
from multiprocessing.process import BaseProcess
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from tests.engines.llm.vllm.test_start import process
from voicepipe.base.errors import EngineError
from voicepipe.engines.llm.vllm import process as vllm_process
from voicepipe.engines.llm.vllm.process import started
from voicepipe.engines.llm.vllm.start import EngineStart


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_process, "_building", asyncio.Lock())
    monkeypatch.setattr(vllm_process, "_on_a_cpu", lambda: False)
    monkeypatch.setattr("voicepipe.engines.llm.vllm.start.LAST_WORDS_S", 0.1)


async def core(build: Any, within_s: float = 60) -> Any:
    def made(built: Any, start: EngineStart[Any]) -> Any:
        return SimpleNamespace(built=built, start=start, processes=start.family())

    async def ready(core: Any) -> None: ...

    return await started(build, made, ready, within_s, lambda: "late")


async def test_builds_go_one_after_the_other_and_know_their_own_processes() -> None:
    """vLLM beside vLLM: one that is given up must not end the other's."""
    go_on, first = Event(), list[BaseProcess]()

    def build() -> BaseProcess:
        first.append(process("EngineCore"))
        go_on.wait(60)
        return first[0]

    one = asyncio.create_task(core(build))
    await asyncio.sleep(0.05)
    never, other = asyncio.create_task(core(first.clear)), asyncio.create_task(core(lambda: process("EngineCore")))
    await asyncio.sleep(0.05)
    never.cancel()
    go_on.set()
    mine, its = await one, await other
    try:
        assert first and never.cancelled()
        assert [each.pid for each in mine.processes] == [mine.built.pid]
        assert [each.pid for each in its.processes] == [its.built.pid]
        await its.start.give_up()
        await asyncio.to_thread(its.built.join, 60)
        assert mine.built.is_alive() and not its.built.is_alive()
    finally:
        await mine.start.give_up()
        await asyncio.to_thread(mine.built.join, 60)


async def test_a_build_that_hangs_does_not_keep_the_others_from_starting() -> None:
    go_on = Event()
    hanging = asyncio.create_task(core(lambda: go_on.wait(60), within_s=0.1))
    await asyncio.sleep(0.05)
    other = await core(lambda: 5)
    with pytest.raises(EngineError, match="late"):
        await hanging
    assert other.built == 5
    go_on.set()
    await other.start.give_up()
