"""A start runs in a thread, and leaves no process behind when it is given up."""

import asyncio
import multiprocessing
import signal
from threading import Event

import pytest

from tests.waiting import until
from voicepipe.engine_config import VllmConfig
from voicepipe.engines.vllm.start import end, family, hung, in_thread


async def test_what_is_built_or_went_wrong_comes_back() -> None:
    assert await in_thread(lambda: 5, print) == 5
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0, print)


async def test_what_nobody_waits_for_any_more_is_dropped() -> None:
    go_on, dropped = Event(), list[int]()

    def build() -> int:
        go_on.wait(60)
        return 5

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await in_thread(build, dropped.append)
    go_on.set()
    await until(lambda: dropped == [5])


def test_processes_of_a_start_that_hangs_are_ended() -> None:
    """Ours is named as vLLM's; the other engine's child and what there was before stay."""
    before, other = process("EngineCore"), process("Kokoro")
    others = [child.pid for child in multiprocessing.active_children()]
    hanging = process("EngineCore_DP0")
    try:
        processes = family(others)
        assert processes[0].pid == hanging.pid
        end(processes)
        hanging.join(60)
        assert not hanging.is_alive()
        assert before.is_alive() and other.is_alive()
        end(processes)
    finally:
        for child in (before, other, hanging):
            child.kill()
            child.join()


def process(name: str) -> multiprocessing.process.BaseProcess:
    child = multiprocessing.get_context("spawn").Process(target=signal.pause, name=name)
    child.start()
    return child


def test_a_start_that_hangs_says_what_to_look_at() -> None:
    alone, together = hung(VllmConfig(start_timeout_s=7)), hung(VllmConfig(tensor_parallel_size=2))
    assert "not ready after 7 s" in alone and "vllm.start_timeout_s" in alone and "NCCL" not in alone
    for clue in ("NCCL_DEBUG=INFO", "NCCL_P2P_DISABLE=1", "/dev/shm", "NCCL_SOCKET_IFNAME", "VLLM_LOGGING_LEVEL"):
        assert clue in together
