"""Starting vLLM: it blocks for a minute or for ever, in a thread of its own, and has processes that must not stay."""

import asyncio
import contextlib
import multiprocessing
import shutil
import signal
import threading
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, TypeVar

from voicepipe.engine_config import VllmConfig

if TYPE_CHECKING:
    from psutil import Process

T = TypeVar("T")
NAMES = ("EngineCore", "VLLM_DP_Coordinator")
"""How vLLM's own children are called; workers are theirs."""
SHARED_MEMORY = "/dev/shm"


async def in_thread(build: Callable[[], T], drop: Callable[[T], None]) -> T:
    """What `build` returns or raises. If nobody waits for it any more, `drop` gets it; nothing waits for the thread.

    A ^C at the terminal reaches the processes that it starts as well: they leave it to us, who have calls to end.
    """
    result: Future[T] = Future()

    def run() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            built = build()
        except BaseException as error:
            with contextlib.suppress(InvalidStateError):
                result.set_exception(error)
            return
        try:
            result.set_result(built)
        except InvalidStateError:
            drop(built)

    threading.Thread(target=run, name="vllm-start", daemon=True).start()
    return await asyncio.wrap_future(result)


def family(others: Collection[int | None] = ()) -> "list[Process]":
    """vLLM's processes below this one, but those below `others`, children of ours too."""
    from psutil import NoSuchProcess, Process

    found = []
    for child in multiprocessing.active_children():
        if child.name.startswith(NAMES) and child.pid not in (None, *others):
            with contextlib.suppress(NoSuchProcess):
                core = Process(child.pid)
                found += [core, *core.children(recursive=True)]
    return found


def end(processes: "Iterable[Process]") -> None:
    """Kill what is left of them: a worker that waits for others holds its GPU's memory until it is gone."""
    from psutil import NoSuchProcess

    for process in processes:
        with contextlib.suppress(NoSuchProcess):
            process.kill()


def hung(config: VllmConfig) -> str:
    """What to tell, and what to look at, when a start took too long."""
    said = f"vLLM was not ready after {config.start_timeout_s} s and was ended"
    log = "VLLM_LOGGING_LEVEL=INFO shows how far it comes"
    if config.tensor_parallel_size == 1:
        return f"{said}: {log}; a large model on slow storage needs more (vllm.start_timeout_s)."
    free_mb = shutil.disk_usage(SHARED_MEMORY).free >> 20
    return (
        f"{said}: {log}. Where its GPUs wait for each other, NCCL_DEBUG=INFO says at what; NCCL_P2P_DISABLE=1 goes "
        f"around a PCIe switch that blocks them; {SHARED_MEMORY} needs 1 GB (it has {free_mb} MB free; docker: "
        "--shm-size); NCCL_SOCKET_IFNAME names the network interface. If it was only slow: vllm.start_timeout_s."
    )
