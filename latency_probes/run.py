"""Places the calls of a plan, several at a time, and judges them."""

import asyncio
import resource
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from latency_probes.caller import Caller
from latency_probes.conversation import converse
from latency_probes.guests import Visit
from latency_probes.measure import greeting_ms, judge_call, routed
from latency_probes.plan import CallPlan, Plan
from latency_probes.records import CallRecord, CallResult, TurnResult
from latency_probes.sound import rng_for
from voicepipe.audio import Pcm
from voicepipe.base.errors import ProbeError, cause

GREETING = "greeting's first sound"
SPREAD_S = 2.0
"""Calls start at random moments of this many seconds, so that their blocks and questions do not march in step."""
AGAIN_S = 1.0


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
    """That ended: fewer than were planned where the run was stopped."""
    planned: int
    failures: list[str]
    """One sentence for every call that failed or ended early."""
    generator: Generator
    setups: dict[str, list[float]]
    """Milliseconds from asking for a call to each of its beginnings, in each call that has such."""
    routed: list[CallResult] = []
    """The calls that a directory has sent somewhere, in the order in which they ended."""
    visits: list[Visit] = []
    """Of guests, in the order in which they ended."""


@dataclass(slots=True)
class Runner:
    """Holds calls and keeps only what was made of them."""

    new_caller: Callable[[CallPlan], Caller]
    seed: int
    concurrency: int
    advance: Callable[[], None]
    """Called after every call."""
    gives_up: bool = True
    """Where the first call that ends could not be placed. If not, callers whose call failed try again in a while."""
    turns: list[TurnResult] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    references: dict[str, Pcm] = field(default_factory=dict)
    connected: int = 0
    ended: int = 0
    lag_s: float = 0.0
    setups: dict[str, list[float]] = field(default_factory=dict)
    routed: list[CallResult] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)

    async def run(self, plan: Plan) -> Run:
        """Hold every call of `plan`; cancelled, return what ended so far: hours of calls are not to be lost.

        Raises ProbeError where no call at all could be placed, unless it is told not to give up.
        """
        wall, cpu = time.monotonic(), processor_seconds()
        with suppress(asyncio.CancelledError):
            await self._place(plan.references)
            await self._place(plan.calls)
        share = (processor_seconds() - cpu) / (time.monotonic() - wall)
        planned = len(plan.references) + len(plan.calls)
        generator = Generator(share, self.lag_s * 1000)
        return Run(self.turns, self.ended, planned, self.failures, generator, self.setups, self.routed, self.visits)

    async def _place(self, calls: Sequence[CallPlan]) -> None:
        waiting = list(reversed(calls))
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(min(self.concurrency, len(calls))):
                    group.create_task(self._one_after_another(number, waiting))
        except ExceptionGroup as closed:
            # Every caller met the same closed door: one sentence is enough. Not by `except*`: before Python 3.11.4 what
            # is raised there comes wrapped.
            raise cause(closed) from None

    async def _one_after_another(self, number: int, waiting: list[CallPlan]) -> None:
        await asyncio.sleep(rng_for(self.seed, f"start {number}").uniform(0, SPREAD_S) if number else 0)
        while waiting:
            plan = waiting.pop()
            record = await converse(self.new_caller(plan), plan, self.seed)
            self.connected += bool(record.timeline.sent)
            if not self.connected and self.gives_up:
                raise ProbeError(record.failure)
            # In a thread: judging takes milliseconds that the other calls' blocks would wait for.
            await asyncio.to_thread(self._keep, record)
            self.advance()
            if record.failure and not self.gives_up:
                await asyncio.sleep(AGAIN_S)

    def _keep(self, record: CallRecord) -> None:
        self.lag_s = max(self.lag_s, record.lag_s)
        for step, ms in record.timeline.setup.items():
            self.setups.setdefault(step, []).append(ms)
        if (greeted := greeting_ms(record)) is not None:
            self.setups.setdefault(GREETING, []).append(greeted)
        if call := routed(record):
            self.routed.append(call)
        if record.visit:
            self.visits.append(record.visit)
        if record.failure:
            self.failures.append(record.failure)
        for result, said in zip(judge_call(record, self.references), record.said, strict=True):
            if result.kind != "reference":
                self.turns.append(result)
            elif reply := record.timeline.answer(after=record.timeline.sent_at(said.start + said.speech.voiced[1] - 1)):
                self.references[said.turn.utterance.id] = reply.pcm
        self.ended += 1


def processor_seconds() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
