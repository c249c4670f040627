"""A process of its own for one target: memory is that target's alone, and its death ends nothing else."""

import logging
import mmap
import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path

from tests.fuzz.campaign import Finding, Tally, run
from tests.fuzz.target import targets

LENGTH = 8
"""Bytes in front of the input in the file that tells what a dead worker was doing."""


class Worker:
    """Runs `inputs` inputs of the target `name`; `tally` is what there is so far."""

    def __init__(self, name: str, inputs: int, seed: str, current: Path) -> None:
        self.name, self.inputs, self.seed = name, inputs, seed
        self.tally, self.done, self.died = Tally(), False, False
        self._current = current
        current.write_bytes(bytes(LENGTH + targets()[name].largest))
        context = multiprocessing.get_context("spawn")
        self.results, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(name, inputs, seed, str(current), theirs), daemon=True)
        self._process.start()
        theirs.close()

    def read(self) -> None:
        """Take what it sent: it has something, or is over."""
        try:
            self.tally = self.results.recv()
            self.done = self.tally.over
        except EOFError:
            self.done = self.died = True
            self._process.join()
            self.tally.findings.append(self._death())
        if self.done:
            self._process.join()
            self.results.close()
            self._current.unlink()

    def _death(self) -> Finding:
        told = self._current.read_bytes()
        size = int.from_bytes(told[:LENGTH], "little")
        how = f"the process ended with {self._process.exitcode} (below 0: that signal)"
        return Finding("death", f"death {self._process.exitcode}", told[LENGTH : LENGTH + size], how)

    def end(self) -> None:
        self._process.kill()
        self._process.join()


def _work(name: str, inputs: int, seed: str, current: str, results: Connection) -> None:
    os.nice(5)
    logging.disable(logging.CRITICAL)  # A fuzzer's inputs are refused by the thousand, and each refusal is logged.
    largest = targets()[name].largest
    with Path(current).open("r+b") as file, mmap.mmap(file.fileno(), 0) as told:

        def before(data: bytes) -> None:
            data = data[:largest]
            told[LENGTH : LENGTH + len(data)] = data
            told[:LENGTH] = len(data).to_bytes(LENGTH, "little")

        results.send(run(targets()[name], inputs, seed, before=before, progress=results.send))
