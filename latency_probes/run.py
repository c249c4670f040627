"""Places the calls of a plan, several at a time, and judges them."""

import asyncio
import resource
import time
from collections.abc import Callable, Sequence

import msgspec

from latency_probes.caller import Caller
from latency_probes.conversation import converse
from latency_probes.measure import judge_call
from latency_probes.plan import CallPlan, Plan
from latency_probes.records import CallRecord, TurnResult
from latency_probes.sound import rng_for
from voicepipe.audio import Pcm
from voicepipe.errors import ProbeError

SPREAD_S = 2.0
"""Calls start at random moments of this many seconds, so that their blocks and questions do not march in step."""

NewCaller = Callable[[CallPlan], Caller]


class Generator(msgspec.Struct):
    """What the probe itself cost: a generator that is late or busy measures itself."""

    cpu_share: float
    """Of one core."""
    worst_lag_ms: float
    """The most by which a block left later than its time."""


class Run(msgspec.Struct):
    """Everything judged in a run."""

    turns: list[TurnResult]
    calls: int
    failures: list[str]
    """One sentence for every call that failed or ended early."""
    generator: Generator


async def run(plan: Plan, new_caller: NewCaller, seed: int, concurrency: int, advance: Callable[[], None]) -> Run:
    """Hold every call of `plan`, at most `concurrency` at a time; `advance` is called after each.

    Raises ProbeError where no call at all could be placed.
    """
    wall, cpu = time.monotonic(), processor_seconds()
    references: dict[str, Pcm] = {}
    turns: list[TurnResult] = []
    records = await place(plan.references, new_caller, seed, concurrency, advance)
    for record in records:
        references |= undisturbed(record)
    later = await place(plan.calls, new_caller, seed, concurrency, advance)
    for record in later:
        turns += judge_call(record, references)
    records += later
    share = (processor_seconds() - cpu) / (time.monotonic() - wall)
    generator = Generator(share, max((record.lag_s for record in records), default=0.0) * 1000)
    return Run(turns, len(records), [record.failure for record in records if record.failure], generator)


async def place(
    calls: Sequence[CallPlan], new_caller: NewCaller, seed: int, concurrency: int, advance: Callable[[], None]
) -> list[CallRecord]:
    """The records of `calls`, in the order in which they ended."""
    waiting = list(reversed(calls))
    records: list[CallRecord] = []

    async def one_after_another(number: int) -> None:
        await asyncio.sleep(rng_for(seed, f"start {number}").uniform(0, SPREAD_S) if number else 0)
        while waiting:
            record = await converse(new_caller(plan := waiting.pop()), plan, seed)
            records.append(record)
            advance()
            if not any(record.timeline.sent for record in records):
                raise ProbeError(record.failure)

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(min(concurrency, len(calls))):
                group.create_task(one_after_another(number))
    except ExceptionGroup as errors:
        # Every caller meets the same closed door: one sentence is enough.
        if first := errors.subgroup(ProbeError):
            raise first.exceptions[0] from None
        raise
    return records


def undisturbed(record: CallRecord) -> dict[str, Pcm]:
    """What was answered to each question of a reference call, by the question's id."""
    heard: dict[str, Pcm] = {}
    for said in record.said:
        reply = record.timeline.answer(after=record.timeline.sent_at(said.start + said.speech.voiced[1] - 1))
        if reply:
            heard[said.turn.utterance.id] = reply.pcm
    return heard


def processor_seconds() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
