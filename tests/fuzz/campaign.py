"""One target and many inputs, in this process: what went wrong, how long the slowest took, what memory stayed."""

import gc
import math
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import voicepipe
from tests.fuzz.coverage import Coverage
from tests.fuzz.mutate import Mutator
from tests.fuzz.target import Target

HANGS_S = 20
"""Processor time after which an input is given up."""
WAITS_S = 300
"""Time after which one that waits is: a slow machine does not take so long."""
TRIES = 3
"""More of an input that seems slow, or the slowest so far: a cost of its own comes each time, a pause does not."""
WATCHED = 8
"""One input in as many is run with coverage."""
MOST_KEPT = 400
"""Inputs that reached something new and are mutated further."""
BLOCK = 1000
"""Inputs between two looks at memory."""
TELL_S = 2.0
"""Between two calls of `progress`."""
LEAK = 0.2
"""Allocated blocks that stay behind for each input: less is what caches do."""
LEAST = 3000
"""Blocks that a leak must have left at least, and inputs after which one can be told."""
PAGE = 4096
OURS = Path(voicepipe.__file__).parent


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that must not do what it does."""

    kind: str
    """"crash", "slow", "leak" or "death"."""
    where: str
    """Tells one defect from another: the error's type and the line of ours that it came through."""
    data: bytes
    says: str
    """The traceback, or the figures."""


@dataclass(slots=True)
class Tally:
    """What came of a number of inputs."""

    inputs: int = 0
    slowest_s: float = 0.0
    slowest: bytes = b""
    findings: list[Finding] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    """Python's allocated memory blocks after each `BLOCK` of inputs."""
    grown_mb: float = 0.0
    """Of the process's resident memory, since a tenth of the inputs were run."""
    kept: int = 0
    reached: int = 0
    over: bool = False
    """Nothing more comes."""


class Hang(BaseException):
    """An input took `HANGS_S`: raised in the middle of whatever it did. No `except Exception` catches it."""


def run(
    target: Target,
    inputs: int,
    seed: str,
    patience: float = 1,
    before: Callable[[bytes], None] = lambda data: None,
    progress: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Run `inputs` inputs. An input may take `patience` times what it should.
    `before` gets each one just before it is run, `progress` now and then what there is."""
    # As in a PoP that is ready: else a full collection looks at all that was imported, and costs one input 40 ms.
    gc.collect()
    gc.freeze()
    try:
        return _run(target, inputs, seed, target.limit_s * patience, before, progress)
    finally:
        gc.unfreeze()


def _run(
    target: Target,
    inputs: int,
    seed: str,
    limit_s: float,
    before: Callable[[bytes], None],
    progress: Callable[[Tally], None],
) -> Tally:
    mutator, coverage, tally = Mutator(target, Random(seed)), Coverage(), Tally()
    first = len(mutator.pool)
    known: set[str] = set()
    resident, told = 0, time.monotonic()
    for number in range(inputs):
        data = mutator.pool[number] if number < first else mutator()
        before(data)
        watched = number < first or number % WATCHED == 0
        new, finding = _one(target, data, tally, limit_s, coverage if watched else None, known)
        if finding and finding.where not in known:
            known.add(finding.where)
            tally.findings.append(finding)
        if new and not finding and number >= first and len(mutator.pool) < first + MOST_KEPT:
            mutator.pool.append(data)
        tally.inputs += 1
        if tally.inputs % BLOCK == 0:
            gc.collect()
            tally.blocks.append(sys.getallocatedblocks())
        if time.monotonic() - told > TELL_S:
            told = time.monotonic()
            progress(tally)
        if tally.inputs == max(1, inputs // 10):
            resident = _resident()
    tally.kept, tally.reached = len(mutator.pool) - first, len(coverage)
    gc.collect()
    tally.grown_mb = (_resident() - resident) / 1e6
    if leak := _leak(tally.blocks):
        tally.findings.append(Finding("leak", "leak", b"", leak))
    tally.over = True
    return tally


def outcome(target: Target, data: bytes, patience: float = 1) -> Finding | None:
    """What is wrong with this one input, if anything is."""
    no_record = Tally(slowest_s=math.inf)
    return _one(target, data, no_record, target.limit_s * patience, None, set())[1]


def _one(
    target: Target, data: bytes, tally: Tally, limit_s: float, coverage: Coverage | None, known: set[str]
) -> tuple[bool, Finding | None]:
    """Whether the input reached something new, and what it did wrong. What is `known` is not looked into again."""
    new, slow = False, f"slow {target.name}"
    began = time.process_time()
    try:
        with _given_up():
            if coverage is not None:
                new = coverage.is_new(target.run, data)
            else:
                target.run(data)
    except Hang:
        return False, Finding(
            "slow", slow, data, f"took over {HANGS_S} s, or waited for {WAITS_S}\n{traceback.format_exc()}"
        )
    except Exception as error:
        return new, Finding("crash", _where(error), data, traceback.format_exc())
    took = time.process_time() - began
    suspect, record = took > limit_s and slow not in known, coverage is None and took > tally.slowest_s
    if not suspect and not record:
        return new, None
    # Tracing takes time, and so may the collector, and a machine that others use too.
    took = min(took, _fastest(target, data, min(limit_s, tally.slowest_s)))
    if took > tally.slowest_s:
        tally.slowest_s, tally.slowest = took, data
    if suspect and took > limit_s:
        said = f"{took * 1000:.0f} ms of processor time, the least of {TRIES + 1} times"
        return new, Finding("slow", slow, data, said)
    return new, None


def _fastest(target: Target, data: bytes, enough_s: float) -> float:
    """Seconds of processor time of the fastest of some runs: of all, or until one takes no more than `enough_s`."""
    best = float("inf")
    for _ in range(TRIES):
        gc.collect()
        began = time.process_time()
        try:
            with _given_up():
                target.run(data)
        except Hang:
            return float(HANGS_S)
        best = min(best, time.process_time() - began)
        if best <= enough_s:
            break
    return best


@contextmanager
def _given_up() -> Iterator[None]:
    """Raises Hang inside after `HANGS_S` of processor time, or `WAITS_S` of any."""
    limits = ((signal.SIGPROF, signal.ITIMER_PROF, HANGS_S), (signal.SIGALRM, signal.ITIMER_REAL, WAITS_S))
    before = [signal.signal(number, _hang) for number, _, _ in limits]
    for _, timer, seconds in limits:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(limits, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def _hang(number: int, frame: object) -> None:
    raise Hang


def _where(error: BaseException) -> str:
    """The error's type, and the innermost line of voicepipe's that it came through (or the innermost of all)."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(OURS)] or frames
    return f"{type(error).__name__} {Path(ours[-1].filename).name}:{ours[-1].lineno}"


def _leak(blocks: list[int]) -> str | None:
    """Growth over the second half of the run, in each quarter of it: caches fill and then stand still."""
    half = blocks[len(blocks) // 2 :]
    if len(blocks) * BLOCK < LEAST or len(half) < 2:
        return None
    middle = half[len(half) // 2]
    inputs = (len(half) - 1) * BLOCK
    grown = half[-1] - half[0]
    steady = middle - half[0] > grown / 5 and half[-1] - middle > grown / 5
    if grown < max(LEAK * inputs, LEAST) or not steady:
        return None
    return f"{grown} allocated blocks stayed behind from {inputs} inputs"


def _resident() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0
