"""Starting vLLM: it blocks for a minute or for ever, in a thread of its own, and has processes that must not stay."""

import asyncio
import contextlib
import logging
import multiprocessing
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, InvalidStateError
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from psutil import Process

log = logging.getLogger(__name__)
T = TypeVar("T")
NAMES = ("EngineCore", "VLLM_DP_Coordinator")
"""How vLLM's own children are called; workers are theirs."""
LAST_WORDS_S = 10.0
"""A build whose processes were ended has so long to see it."""
BURIED_S = 2.0
"""A process that was killed is gone by then, or hangs in its driver."""
RANK = "::Worker"
"""What the title of a process has that computes a part of the model, as VLLM::Worker_PP1."""
SHARED_MEMORY = "/dev/shm"
WATCH_S = 1.0
NICE = 10
"""Higher than that of workers in this process (`base/worker.py`)."""


class EngineStart(Generic[T]):
    """One start of vLLM: runs `build`, which starts processes and may hang, in a thread of its own.

    Nobody may make another one meanwhile: the processes that appear are taken for its own.

    A ^C at the terminal reaches those processes as well: they leave it to us, who have calls to end.
    """

    def __init__(self, build: Callable[[], T]) -> None:
        self._build = build
        self._result: Future[T] = Future()
        self.guard = Guard()
        self._others = [child.pid for child in multiprocessing.active_children()]
        self._family: list[Process] | None = None
        """All processes that it started, once it is over."""
        self._thread = threading.Thread(target=self._run, name="vllm-start", daemon=True)
        self._thread.start()
        threading.Thread(target=self._watch, name="vllm-guard", daemon=True).start()

    async def result(self) -> T:
        """The value that `build` returns; raises what it raises."""
        return await asyncio.wrap_future(self._result)

    def family(self) -> "list[Process]":
        """The processes that it started."""
        return family(self._others) if self._family is None else self._family

    async def give_up(self) -> None:
        """End its processes, and those that it has yet to start; a build that hangs without any is left behind."""
        deadline = time.monotonic() + LAST_WORDS_S
        while self._thread.is_alive() and time.monotonic() < deadline:
            await asyncio.to_thread(self._end)
            await asyncio.sleep(0.05)
        await asyncio.to_thread(self._end)
        await asyncio.to_thread(self.guard.end)

    def _end(self) -> None:
        end(self.family())

    def _run(self) -> None:
        # Where multiprocessing's own process is started later, it unblocks SIGINT.
        resource_tracker.ensure_running()
        # A terminal sends both to all its processes: ^C begins our own drain, and its end (SIGHUP) ends no PoP.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
        with contextlib.suppress(InvalidStateError):  # if nobody waits for it
            try:
                result = self._build()
                self._family = family(self._others)
                self._result.set_result(result)
            except BaseException as error:
                self._result.set_exception(error)

    def _watch(self) -> None:
        """Processes come one after the other, and loading may be what kills this one."""
        while self._thread.is_alive() and not self.guard.over.wait(WATCH_S):
            self.guard.watch(self.family())


class Guard:
    """Kills vLLM's processes once this process has ended, however it did: a shell does it. They would stay, with their
    GPUs' memory. Blocking; for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: set[int] = set()
        self._shell: subprocess.Popen[bytes] | None = None
        self.over = threading.Event()

    def watch(self, processes: "Iterable[Process]") -> None:
        """Watch these processes, too."""
        with self._lock:
            new = {process.pid for process in processes} - self._watched
            if not new or self.over.is_set():
                return
            self._watched |= new
            self._shell = self._shell or subprocess.Popen(
                ["sh", "-c", 'while read -r pid; do pids="$pids $pid"; done; kill -9 $pids'],
                stdin=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # ^C is not for it
            )
            assert self._shell.stdin
            with contextlib.suppress(OSError):  # somebody killed it
                self._shell.stdin.write("".join(f"{pid}\n" for pid in new).encode())
                self._shell.stdin.flush()

    def end(self) -> None:
        """Its processes have ended before. Safe to call twice."""
        with self._lock:
            self.over.set()
            if self._shell:
                self._shell.kill()
                self._shell.wait()


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


class RankWatch:
    """Those of vLLM's processes that compute a part of the model: without one there is no reply. vLLM tells of its end
    once the others, which wait for it, are gone, too: up to 9 s later. Make it on a thread: it reads /proc."""

    def __init__(self, processes: "Iterable[Process]") -> None:
        from psutil import NoSuchProcess

        self._ends = select.poll()
        self._open: list[int] = []
        self._lost = False
        for process in processes:
            try:
                if RANK in process.name():
                    self._open.append(os.pidfd_open(process.pid))
                    self._ends.register(self._open[-1], select.POLLIN)
            except NoSuchProcess:
                continue
            except ProcessLookupError:
                self._lost = True
            except OSError as error:  # a kernel, or a sandbox, without pidfd_open: vLLM tells, later
                log.debug("%s cannot be watched: %s", process, error)

    @property
    def lost(self) -> bool:
        """Whether one of them has ended, though its parent may not have noticed yet."""
        self._lost = self._lost or bool(self._ends.poll(0))
        return self._lost

    def close(self) -> None:
        """Watch them no more. Safe to call twice."""
        while self._open:
            self._ends.unregister(self._open[-1])
            os.close(self._open.pop())


def end(processes: "Iterable[Process]") -> None:
    """Kill what is left of them: a worker that waits for others holds its GPU's memory until it is gone."""
    from psutil import NoSuchProcess

    pids = set()
    for process in processes:
        pids.add(process.pid)
        with contextlib.suppress(NoSuchProcess):
            process.kill()
    for child in multiprocessing.active_children():  # Asking buries those that have ended.
        if child.pid in pids:
            child.join(BURIED_S)


def lower(processes: "Iterable[Process]") -> None:
    """Where vLLM runs on a CPU: recognition, whose words it is to answer, and the event loop go before it."""
    from psutil import Error

    for process in processes:
        with contextlib.suppress(Error, OSError):  # It has ended, or is lower already.
            for thread in process.threads():  # On Linux each has a niceness of its own.
                os.setpriority(os.PRIO_PROCESS, thread.id, NICE)


def hung(table: str, start_timeout_s: int, gpus: int = 1, hosts: int = 1) -> str:
    """The error when a start took too long, with what to look at. `table`: of the configuration. `gpus`: of this
    machine, that share the model; 0: unknown. `hosts`: that share it, each of which has to be started."""
    said = f"vLLM was not ready after {start_timeout_s} s and was ended"
    log = "VLLM_LOGGING_LEVEL=INFO shows how far it comes"
    if hosts > 1:
        log += f"; it waits until `vllm serve --headless` runs on the other {hosts - 1} of its hosts (pops/gpu.md)"
    if gpus == hosts == 1:
        return f"{said}: {log}; a large model on slow storage needs more ({table}.start_timeout_s)."
    free_mb = shutil.disk_usage(SHARED_MEMORY).free >> 20
    return (
        f"{said}: {log}. Where its GPUs wait for each other, NCCL_DEBUG=INFO says at what; NCCL_P2P_DISABLE=1 goes "
        f"around a PCIe switch that blocks them; {SHARED_MEMORY} needs 1 GB (it has {free_mb} MB free; docker: "
        f"--shm-size); NCCL_SOCKET_IFNAME names the network interface. If it was only slow: {table}.start_timeout_s."
    )
