"""Some seconds of calls: the media clock, chunks and turns come from an event loop, the recogniser's thread serves."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from tests.gpu_engines.standins.cases import Case
from tests.gpu_engines.standins.recogniser import StandInRecogniser
from tests.gpu_engines.standins.voice import SpokenReplies, VoiceFigures
from tests.gpu_engines.standins.worker import SETTLE_STEPS, AskedChunk, StreamingWorker, WorkerTimes

TICK_S, CHUNK_S = 0.020, 0.160
TURN_S = 6.0
"""From one end of speech to the next one of a call."""
LEAST_RATE = 4.0
"""Ends of speech a second that the recogniser is asked for: few calls end more often than they would, or they gave no
figure. The language model gets turns at the true rate."""


@dataclass(frozen=True, slots=True)
class WindowLoad:
    case: Case
    window_s: float
    """Measured; the case's lead goes before it."""
    seed: int

    @property
    def rate(self) -> float:
        """Turns a second, of all calls."""
        return self.case.calls / TURN_S


@dataclass(slots=True)
class WindowFigures:
    """Of one window, in ms."""

    step: list[float]
    rows: list[float]
    """Of each step."""
    chunk: list[float]
    settle: list[float]
    clock: list[float]
    """By how much each tick was late."""
    in_time: int
    """Calls of which at most one chunk in twenty came after the next one was due."""
    undone: int
    voice: VoiceFigures | None


Answering = Callable[[float], Callable[[float], None]]
"""Told when a caller's speech has ended. What it returns is called, in any thread, with the time at which the words are
on the host."""


def seen(
    load: WindowLoad, recogniser: StandInRecogniser, thread: Executor, answering: Answering | None,
    replies: SpokenReplies | None,
) -> WindowFigures:  # fmt: skip
    """`thread` has one worker, and cuDNN has met every shape in it. `replies`: where they are spoken. Raises what
    torch raises."""
    worker = StreamingWorker(recogniser)
    begin = time.monotonic() + 0.05
    heard = thread.submit(worker.run)
    try:
        with asyncio.Runner(loop_factory=_loop()) as runner:
            late = runner.run(_played(load, begin, worker.inbox.put, answering, replies))
    finally:
        worker.inbox.put(None)
    return _figures(load, begin, heard.result(timeout=30), late, replies)


def _loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """A PoP's, if it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    new: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return new


async def _played(
    load: WindowLoad, begin: float, ask: Callable[[AskedChunk], None], answering: Answering | None,
    replies: SpokenReplies | None,
) -> list[tuple[float, float]]:  # fmt: skip
    """Chunks and turns are timers of the loop; the clock is as `voicepipe.rtp.clock` keeps it."""
    rate, calls = max(load.rate, LEAST_RATE), load.case.calls
    loop, rng = asyncio.get_running_loop(), random.Random(load.seed)
    end = begin + load.case.lead_s + load.window_s

    def chunk(call: int, due: float) -> None:
        ask(AskedChunk(call, due))
        after(due + CHUNK_S, lambda: chunk(call, due + CHUNK_S))

    def turn(due: float) -> None:
        answer = answering(due) if answering and rng.random() * rate < load.rate else None  # at the true rate
        ask(AskedChunk(rng.randrange(calls), due, SETTLE_STEPS, answer=answer))
        following = due + rng.expovariate(rate)
        after(following, lambda: turn(following))

    def after(due: float, act: Callable[[], None]) -> None:
        if due < end:
            loop.call_later(max(0.0, due - time.monotonic()), act)

    for call in range(calls):
        due = begin + CHUNK_S * rng.random()
        after(due, lambda call=call, due=due: chunk(call, due))  # type: ignore[misc]
    if calls:
        first = begin + rng.expovariate(rate)
        after(first, lambda: turn(first))
    if replies:
        replies.listen()
    late, due = [], begin
    while due < end:
        await asyncio.sleep(due - time.monotonic())
        now = time.monotonic()
        late.append((due, max(0.0, now - due)))
        due = max(due, now - TICK_S) + TICK_S
    if replies:
        replies.deafen()
    return late


def _figures(
    load: WindowLoad,
    begin: float,
    heard: WorkerTimes,
    late: list[tuple[float, float]],
    replies: SpokenReplies | None,
) -> WindowFigures:
    start = begin + load.case.lead_s
    end = start + load.window_s
    steps = [step for step in heard.steps if step[0] >= start]
    chunks = [chunk for chunk in heard.chunks if chunk[0] >= start]
    undone = [each for each in heard.undone if not each.steps and start <= each.due < end - CHUNK_S]
    had, missed = Counter[int](), Counter[int]()
    for _, call, took in chunks:
        had[call] += 1
        missed[call] += took > CHUNK_S
    for each in undone:
        had[each.call] += 1
        missed[each.call] += 1
    return WindowFigures(
        step=[1000 * took for _, took, _ in steps],
        rows=[float(rows) for _, _, rows in steps],
        chunk=[1000 * took for _, _, took in chunks],
        settle=[1000 * took for due, took in heard.settles if due >= start],
        clock=[1000 * each for due, each in late if due >= start],
        in_time=sum(had[call] > 0 and missed[call] <= 0.05 * had[call] for call in range(load.case.calls)),
        undone=len(undone),
        voice=replies.figures(start, end) if replies else None,
    )
