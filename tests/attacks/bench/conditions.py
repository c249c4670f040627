"""One attack on one fresh PoP: so many turns without it, then so many beside it; what was noticed and what stayed."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from itertools import cycle, islice
from math import ceil
from statistics import fmean
from urllib.parse import urlsplit

import msgspec

from latency_probes import clips
from latency_probes.plan import CallPlan, Plan, Turn
from latency_probes.records import TurnResult
from latency_probes.run import Runner
from tests.attacks.bench.attacker import Order, Said, attacked
from tests.attacks.bench.pop import BenchPop, Held, bench_pop
from voicepipe.base.errors import ProbeError
from voicepipe.base.figures import percentile

AT_A_TIME = 8
TURNS_A_CALL = 8
"""At most."""
ATTACKS = 5
"""Equal ones, after the first and the last of which the PoP's memory is read. More follow while turns are left."""
SETTLE_S = 2.0
"""From the end of an attack to the reading."""
MOST_S = 600.0
"""A condition that takes longer is cut off: what was to be measured is not to be had."""


class Turns(msgspec.Struct, frozen=True):
    """What well-behaved callers noticed. Times in ms, None where there was none."""

    turns: int
    latency_p50: float | None
    latency_p95: float | None
    """As the server has it: turn latency."""
    gap_p50: float | None
    gap_p95: float | None
    """As the caller has it: the heard gap, which also has what the server cannot see."""
    cut: int
    """Replies that ended early, or began before the caller had finished."""
    fallback: int
    missed: int
    """Turns without an answer within 4 s."""
    calls: int
    failures: list[str]
    """One sentence for every call that could not be placed or ended early."""
    seconds: float
    cpu_s: float
    """Processor time of the PoP."""
    waited_s: float
    """For so long its event loop could have run and had no core."""
    stolen_s: float
    """For so long, of one core, the machine's own host gave it less than it wanted."""

    @property
    def cpu(self) -> float:
        """Processor time of the PoP, of one core."""
        return self.cpu_s / self.seconds

    @property
    def waited(self) -> float:
        """Share of the time in which its loop could have run and had no core."""
        return self.waited_s / self.seconds

    @property
    def stolen(self) -> float:
        """Share of all cores' time that the machine's own host kept."""
        return self.stolen_s / self.seconds / (os.cpu_count() or 1)


class Result(msgspec.Struct, frozen=True):
    """One attack on one PoP."""

    attack: str
    without: Turns
    beside: Turns
    held: list[Held]
    """Before the first attack, and after each."""
    told: dict[str, int]
    errors: list[str]
    """Of the attack itself."""
    ended: bool
    """The PoP's process is no more."""
    last_words: str = ""
    """Of a PoP that has ended: the end of its log."""
    sent_mbits: float = 0.0
    """Mbit/s of the attackers, the mean of the attacks."""

    @property
    def stolen(self) -> float:
        """Share of all cores' time that the machine's own host kept, in the worse of both conditions."""
        return max(self.without.stolen, self.beside.stolen)

    @property
    def growth_mb(self) -> float | None:
        """Memory after the fifth attack less memory after the first; None where there were not so many."""
        first, last = self.memory_after(1), self.memory_after(ATTACKS)
        return None if first is None or last is None else last - first

    def memory_after(self, attacks: int) -> float | None:
        """In MB, after so many attacks."""
        return self.held[attacks].rss_mb if len(self.held) > attacks else None


def plans(turns: int) -> list[CallPlan]:
    """Eight calls, or twice as many and so on, of up to eight questions each, at least so many turns in all: all eight
    are busy until nearly the end."""
    asked = [item for item in clips.load(["finished"]) if (item.intent, item.noise) == ("hours", "quiet")]
    calls = AT_A_TIME * ceil(turns / (AT_A_TIME * TURNS_A_CALL))
    questions = cycle(Turn("finished", item) for item in asked)
    return [CallPlan(number, "quiet", tuple(islice(questions, ceil(turns / calls)))) for number in range(calls)]


async def one_result(
    attack: str, seconds: float, turns: int, key_holder: bool, progress: Callable[[str], None]
) -> Result:
    """Raises ProbeError where the PoP does not start, or no call can be placed even without the attack."""
    with bench_pop() as pop:
        await said(pop, AT_A_TIME)  # what is loaded and filled once
        progress("without it")
        without = await said(pop, turns)
        if not without.turns:
            raise ProbeError(f"without an attack no turn took place: {without.failures[:1]}")
        order = Order(attack, seconds, urlsplit(pop.url).hostname or "", urlsplit(pop.url).port or 0,
                      pop.attackers_key if key_holder else "", pop.sip_port, pop.pid)  # fmt: skip
        progress("beside it")
        calls = asyncio.create_task(said(pop, turns))
        held, answers = await again(pop, order, calls)
        beside = await calls
        ended = await asyncio.to_thread(pop.held) is None
        told: Counter[str] = Counter()
        for answer in answers:
            told.update(answer.told)
        errors = list(dict.fromkeys(error for answer in answers for error in answer.errors))
        words = pop.log.read_text()[-2000:] if ended else ""
        sent = fmean(answer.sent_mbits for answer in answers) if answers else 0.0
        return Result(attack, without, beside, held, dict(told.most_common(20)), errors, ended, words, sent)


async def again(pop: BenchPop, order: Order, calls: "asyncio.Task[Turns]") -> tuple[list[Held], list[Said]]:
    """Attack until there were enough attacks and turns, or the PoP is no more."""
    held, answers = [await asyncio.to_thread(pop.held)], list[Said]()
    while held[-1] is not None and (len(answers) < ATTACKS or not calls.done()):
        answers.append(await attacked(order))
        await asyncio.sleep(SETTLE_S)
        held.append(await asyncio.to_thread(pop.held))
    return [one for one in held if one is not None], answers


async def said(pop: BenchPop, turns: int) -> Turns:
    """Well-behaved calls, eight at a time, each of which waits for the answer before it goes on."""
    runner = Runner(pop.caller, 1, AT_A_TIME, lambda: None, gives_up=False)
    before = await asyncio.to_thread(pop.held)
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(MOST_S):
        run = await runner.run(Plan((), tuple(plans(turns))))
    took = asyncio.get_running_loop().time() - began
    late = [f"{run.planned - run.calls} calls did not end within {MOST_S:.0f} s"] if run.calls < run.planned else []
    after = await asyncio.to_thread(pop.held)
    return noticed(run.turns, run.calls, run.failures + late, took, before, after)


def noticed(
    results: list[TurnResult], calls: int, failures: list[str], seconds: float, before: Held | None, after: Held | None
) -> Turns:
    """Pure: the figures of these turns, which took so long; what the PoP held `before` and `after`."""
    latencies = [result.stages["turn_latency"] for result in results if "turn_latency" in result.stages]
    gaps = [result.gap_ms for result in results if result.gap_ms is not None]
    answered = [result for result in results if result.outcome in ("right", "wrong")]
    return Turns(
        turns=len(results),
        latency_p50=percentile(latencies, 50),
        latency_p95=percentile(latencies, 95),
        gap_p50=percentile(gaps, 50),
        gap_p95=percentile(gaps, 95),
        cut=sum(result.cut_in or result.status not in ("completed", "") for result in answered),
        fallback=sum(result.outcome == "fallback" for result in results),
        missed=sum(result.outcome in ("none", "acknowledged") for result in results),
        calls=calls,
        failures=failures,
        seconds=seconds,
        cpu_s=after.cpu_s - before.cpu_s if before and after else 0.0,
        waited_s=after.waited_s - before.waited_s if before and after else 0.0,
        stolen_s=after.stolen_s - before.stolen_s if before and after else 0.0,
    )
