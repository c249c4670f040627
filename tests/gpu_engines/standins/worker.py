"""The recogniser's thread: one step of whatever is due, again and again."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from tests.gpu_engines.standins.recogniser import MOST, Row, StandInRecogniser

SETTLE_STEPS = 2
"""What is left of the chunk with silence behind it, then silence, in which the last words come out."""


@dataclass(slots=True)
class AskedChunk:
    """A chunk of a call, whose sound is whole at the monotonic second `due`; or (`steps`) a settle."""

    call: int
    due: float
    steps: int = 0
    spare: int = -1
    """The slot that a settle has begun to use."""
    answer: Callable[[float], None] | None = None
    """Called with the time at which a settle's words are on the host."""


@dataclass(slots=True)
class WorkerTimes:
    """Seconds are monotonic."""

    steps: list[tuple[float, float, int]] = field(default_factory=list)
    """When it began, what it took, rows."""
    chunks: list[tuple[float, int, float]] = field(default_factory=list)
    """When it was due, of which call, how long until its words were on the host."""
    settles: list[tuple[float, float]] = field(default_factory=list)
    """When it was asked for, how long until its words were on the host."""
    undone: list[AskedChunk] = field(default_factory=list)
    """What was not begun when the window ended."""


class StreamingWorker:
    """`inbox`: None ends it."""

    def __init__(self, recogniser: StandInRecogniser) -> None:
        self._recogniser = recogniser
        self.inbox: SimpleQueue[AskedChunk | None] = SimpleQueue()
        self._waiting: deque[AskedChunk] = deque()
        self._spare = list(recogniser.spare)

    def run(self) -> WorkerTimes:
        """Until the inbox says so. Raises what torch raises."""
        heard = WorkerTimes()
        while self._taken():
            batch = self._batch()
            began = time.monotonic()
            self._recogniser.hear([row(each) for each in batch])
            ended = time.monotonic()
            heard.steps.append((began, ended - began, len(batch)))
            for each in batch:
                self._told(each, ended, heard)
        heard.undone = list(self._waiting)
        return heard

    def _taken(self) -> bool:
        """All that has come; waits where there is nothing to do. False: it is over."""
        block = not self._waiting
        while True:
            try:
                asked = self.inbox.get(block)
            except Empty:
                return True
            if asked is None:
                return False
            self._waiting.append(asked)
            block = False

    def _batch(self) -> list[AskedChunk]:
        """In order, one thing of each call at a time: a settle reads what the chunk before it has left."""
        batch: list[AskedChunk] = []
        busy: set[int] = set()
        later: deque[AskedChunk] = deque()
        for each in self._waiting:
            begun = each.spare >= 0
            ready = begun or (each.call not in busy and (not each.steps or bool(self._spare)))
            if not ready or len(batch) == MOST:
                busy.add(each.call)
                later.append(each)
                continue
            if each.steps and not begun:
                each.spare = self._spare.pop()
            if not begun:
                busy.add(each.call)
            batch.append(each)
        self._waiting = later
        return batch

    def _told(self, asked: AskedChunk, now: float, heard: WorkerTimes) -> None:
        if not asked.steps:
            heard.chunks.append((asked.due, asked.call, now - asked.due))
            return
        asked.steps -= 1
        if asked.steps:
            asked.call = -1  # it reads its own slot from now on
            self._waiting.appendleft(asked)
        else:
            self._spare.append(asked.spare)
            heard.settles.append((asked.due, now - asked.due))
            if asked.answer:
                asked.answer(now)


def row(asked: AskedChunk) -> Row:
    if not asked.steps:
        return Row(asked.call, asked.call, silent=False)
    return Row(asked.spare if asked.call < 0 else asked.call, asked.spare, silent=True)
