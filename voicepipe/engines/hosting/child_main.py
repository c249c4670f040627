"""What the interpreter of a child process runs: `python -Iu child_main.py ENGINE.py` (see child.py for the other end).

It has its engine's library and, perhaps, nothing of ours: so this file, and those of the engines that it loads, import
nothing but the standard library and what that library needs. ENGINE.py has a function

    load(settings) -> (about, answer)

`about` is what the parent learns of the engine, and in `trial` a head that it answers whenever it works. `answer(head,
data)` yields the parts of one answer, each a dict and bytes. Between two parts a request may be cancelled: the
generator is closed.

A frame, either way: the sizes of head and data as two little-endian uint32, the head as JSON, the data. Parent: first
{settings}, then {id, ask} with data, the next one after the end of that, and {cancel: id}. Child: after MAGIC
{ready: about}, {missing: why} or {failed: why}; then for each request {id, part} with data and at last {id, end: ""},
or why it failed in `end`.
"""

import importlib.util
import json
import os
import queue
import signal
import struct
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NoReturn

Head = dict[str, Any]
Answer = Callable[[Head, bytes], Iterator[tuple[Head, bytes]]]
Load = Callable[[Head], tuple[Head, Answer]]

SIZES = struct.Struct("<II")
MAGIC = b"\0voicepipe child\0"
"""Before the first frame: what came earlier was printed by somebody else."""
NICE = 5


def frame(head: Head, data: bytes = b"") -> bytes:
    """The bytes of one frame."""
    text = json.dumps(head).encode()
    return SIZES.pack(len(text), len(data)) + text + data


class ServedRequest:
    """A request that this process, a child, works on or is to work on."""

    def __init__(self, number: int, head: Head, data: bytes) -> None:
        self.number = number
        self.head = head
        self.data = data
        self.cancelled = False


class ChildServer:
    """Answers the requests of the parent process, one after the other, with the engine that `run` loads."""

    def __init__(self, requests: BinaryIO, answers: BinaryIO) -> None:
        self._requests = requests
        self._answers = answers
        self._waiting: queue.SimpleQueue[ServedRequest] = queue.SimpleQueue()
        self._latest: ServedRequest | None = None

    def run(self, engine: str) -> None:
        """Load the engine, then answer until the parent is gone. Returns if it cannot be loaded."""
        settings, _ = self._read()
        # From here on, so that a parent that dies while this loads takes it along.
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            about, answer = load(engine)(settings["settings"])
        except ImportError as error:
            self._write({"missing": str(error)})
            return
        except Exception as error:
            traceback.print_exc()
            self._write({"failed": described(error)})
            return
        self._write({"ready": about})
        self._work(answer)

    def _work(self, answer: Answer) -> NoReturn:
        while True:
            request = self._waiting.get()
            problem = ""
            try:
                if not request.cancelled:
                    self._answer(answer, request)
            except BaseException as error:  # a library's SystemExit would end this without an answer
                traceback.print_exc()
                problem = described(error)
            self._write({"id": request.number, "end": problem})

    def _answer(self, answer: Answer, request: ServedRequest) -> None:
        for head, data in answer(request.head, request.data):
            if request.cancelled:
                return  # and nobody holds the generator any more: it is closed
            self._write({"id": request.number, "part": head}, data)

    def _listen(self) -> NoReturn:
        try:
            while True:
                head, data = self._read()
                if "cancel" in head:
                    if self._latest and self._latest.number == head["cancel"]:
                        self._latest.cancelled = True
                else:
                    self._latest = ServedRequest(head["id"], head["ask"], data)
                    self._waiting.put(self._latest)
        finally:  # also when a frame breaks off, since the parent died in its middle
            leave()

    def _read(self) -> tuple[Head, bytes]:
        sizes = self._requests.read(SIZES.size)
        if len(sizes) < SIZES.size:
            leave()
        text, data = (self._requests.read(size) for size in SIZES.unpack(sizes))
        return json.loads(text), data

    def _write(self, head: Head, data: bytes = b"") -> None:
        try:
            self._answers.write(frame(head, data))
            self._answers.flush()
        except OSError:
            leave()


def leave() -> NoReturn:
    """The parent has closed its end, or is dead: so ends this process, whatever it is doing, with its own children."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def load(path: str) -> Load:
    """`load` of the engine's file, which is in no package here."""
    spec = importlib.util.spec_from_file_location("engine", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Load = module.load
    return found


def described(error: BaseException) -> str:
    """The error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def main() -> None:
    # Libraries print, and what they print must not come between the frames: standard output becomes standard error.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.nice(NICE)
    answers.write(MAGIC)
    ChildServer(sys.stdin.buffer, answers).run(sys.argv[1])
    os._exit(1)  # not sys.exit, which would wait for the thread that listens


if __name__ == "__main__":
    main()
