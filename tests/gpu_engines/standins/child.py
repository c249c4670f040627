"""The language model in a process of its own, as production's vLLM is one."""

import multiprocessing
import os
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

import torch

from tests.gpu_engines.standins.device import Device
from tests.gpu_engines.standins.language import LanguageLoad, Replies
from voicepipe.base.environment import put_variable
from voicepipe.sizing.shapes import LlmShape

START, ASK, STOP = "start", "ask", "stop"


def serve(commands: Connection, phrases: Connection, shape: LlmShape, cuda: bool, share: int) -> None:
    """Of the process: START begins a load, ASK a reply in it, STOP ends it and is answered. It ends with its parent."""
    try:
        if share < 100:
            put_variable("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", str(share))  # read when CUDA starts
        torch.set_num_threads(1)
        device = Device(cuda=cuda)
        language = LanguageLoad(device, shape, lambda *told: phrases.send(told))
        commands.send(device.unrecorded)
        while True:
            command, *what = commands.recv()
            if command == ASK:
                language.ask(*what)
            elif command == START:
                language.start(*what)
            else:
                commands.send(language.stop())
    except EOFError:
        os._exit(0)
    except Exception as error:
        commands.send(RuntimeError(f"{type(error).__name__}: {error}"[:500]))
        os._exit(1)


class LanguageChild:
    """As `LanguageLoad` is; it builds its model while others go on."""

    def __init__(self, shape: LlmShape, *, cuda: bool, share: int = 100) -> None:
        """`share`: of the GPU in percent, at most, where CUDA MPS runs."""
        spawning = multiprocessing.get_context("spawn")  # a process that knows CUDA cannot be forked
        self._commands, theirs = spawning.Pipe()
        self.phrases, told = spawning.Pipe(duplex=False)
        """As `LanguageLoad` tells them, of the turns that `ask` has named."""
        served = (theirs, told, shape, cuda, share)
        self._process = spawning.Process(target=serve, args=served, name="language", daemon=True)
        self._process.start()
        theirs.close()
        told.close()
        self._sending = threading.Lock()
        """The recogniser's thread asks, the main one starts and stops."""

    def ready(self, timeout_s: float) -> list[str]:
        """Waits for it; its `Device.unrecorded`. Raises what went wrong."""
        unrecorded: list[str] = self._answer(timeout_s)
        return unrecorded

    def start(self, lead_s: float) -> None:
        self._send(START, lead_s)

    def ask(self, turn: int, now: float) -> None:
        """From any thread."""
        self._send(ASK, turn, now)

    def stop(self) -> Replies:
        self._send(STOP)
        replies: Replies = self._answer(25)
        while self.phrases.poll():  # nobody spoke them any more
            self.phrases.recv()
        return replies

    def kill(self) -> None:
        self._process.kill()
        self._process.join(5)

    def _send(self, *command: Any) -> None:
        with self._sending:
            self._commands.send(command)

    def _answer(self, timeout_s: float) -> Any:
        until = time.monotonic() + timeout_s
        while not self._commands.poll(0.1):
            if time.monotonic() > until:
                raise TimeoutError(f"the language model's process said nothing for {timeout_s:.0f} s")
        answer = self._commands.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer
