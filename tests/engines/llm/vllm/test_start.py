"""A start runs in a thread, and leaves no process behind when it is given up."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
from multiprocessing.process import BaseProcess
from threading import Event

import pytest
from psutil import Process

from voicepipe.engines.llm.vllm.start import WATCH_S, EngineStart, Guard, RankWatch, end, family, hung


async def test_what_is_built_or_went_wrong_comes_back() -> None:
    built, broken = EngineStart(lambda: 5), EngineStart(lambda: 1 // 0)
    assert await built.result() == 5
    with pytest.raises(ZeroDivisionError):
        await broken.result()
    for start in (built, broken):
        await start.give_up()


async def test_what_a_terminal_sends_to_all_does_not_end_its_processes() -> None:
    children = list[BaseProcess]()
    start = EngineStart(lambda: children.append(process("EngineCore")))
    await start.result()
    try:
        for number in (signal.SIGINT, signal.SIGHUP):
            os.kill(children[0].pid or 0, number)
        await asyncio.to_thread(children[0].join, 0.3)
        assert children[0].is_alive()
    finally:
        await start.give_up()


async def test_a_start_that_hangs_is_given_up_with_its_processes() -> None:
    children = list[BaseProcess]()

    def build() -> None:
        children.append(process("EngineCore"))
        children[0].join()

    start = EngineStart(build)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await start.result()
    await start.give_up()
    await asyncio.to_thread(children[0].join, 60)
    assert not await asyncio.to_thread(start.family)


async def test_processes_that_a_start_has_yet_to_make_are_ended_too() -> None:
    go_on, children = Event(), list[BaseProcess]()

    def build() -> None:
        go_on.wait(60)
        children.append(process("EngineCore"))
        children[0].join()

    start = EngineStart(build)
    giving_up = asyncio.create_task(start.give_up())
    await asyncio.sleep(0.1)
    go_on.set()
    await giving_up
    assert children and not await asyncio.to_thread(start.family)


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


def test_what_was_ended_is_no_zombie() -> None:
    """vLLM kills an engine that is slow to end, and then nobody buried it."""
    core = Process(process("EngineCore").pid)
    end([core])
    assert not core.is_running()
    end([core])


def test_a_rank_is_lost_before_its_parent_has_noticed() -> None:
    """vLLM notices, and then gives the others seconds to end before it tells."""
    titled = 'import ctypes, signal; ctypes.CDLL(None).prctl(15, b"VLLM::Worker_PP"); print(flush=True); signal.pause()'
    with subprocess.Popen([sys.executable, "-c", titled], stdout=subprocess.PIPE) as rank:
        assert rank.stdout and rank.stdout.readline()
        one = Process(rank.pid)
        ranks, others = RankWatch([Process(), one]), RankWatch([Process()])
        assert not ranks.lost
        rank.kill()
        os.waitid(os.P_PID, rank.pid, os.WEXITED | os.WNOWAIT)  # It has ended, and is not buried.
        assert ranks.lost and not others.lost
    for each in (ranks, others, ranks):
        each.close()
    assert ranks.lost and not others.lost


def test_processes_end_with_ours_however_that_ends() -> None:
    first, second = process("EngineCore"), process("EngineCore")
    guard = Guard()
    guard.watch([Process(first.pid)])
    guard.watch([Process(first.pid), Process(second.pid)])
    _lose(guard)
    for child in (first, second):
        child.join(60)
        assert child.exitcode == -signal.SIGKILL


async def test_while_they_are_still_loading_too() -> None:
    children, made = list[BaseProcess](), Event()

    def build() -> None:
        children.append(process("EngineCore"))
        made.set()
        children[0].join()

    start = EngineStart(build)
    await asyncio.to_thread(made.wait, 60)
    await asyncio.sleep(2 * WATCH_S)
    while children[0].is_alive():  # on a slow machine it may be told of only now
        if start.guard._watched:
            _lose(start.guard)
        await asyncio.sleep(0.1)
    assert children[0].exitcode == -signal.SIGKILL
    await start.give_up()


def _lose(guard: Guard) -> None:
    """What the end of this process does."""
    assert guard._shell and guard._shell.stdin
    guard._shell.stdin.close()


def process(name: str) -> BaseProcess:
    child = multiprocessing.get_context("spawn").Process(target=signal.pause, name=name, daemon=True)
    child.start()
    return child


def test_a_start_that_hangs_says_what_to_look_at() -> None:
    alone, together = hung("vllm", 7), hung("vllm", 600, gpus=2)
    assert "not ready after 7 s" in alone and "vllm.start_timeout_s" in alone and "NCCL" not in alone
    for clue in ("NCCL_DEBUG=INFO", "NCCL_P2P_DISABLE=1", "/dev/shm", "NCCL_SOCKET_IFNAME", "VLLM_LOGGING_LEVEL"):
        assert clue in together
