"""`python -m tests.chaos`: break one thing after another, and tell what callers noticed.

Exit status: 0 as it should be, 1 worse.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from latency_probes import clips
from tests.chaos.caller import Caller, Heard, call
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.site import Site, site
from voicepipe.audio import Pcm

BACK_S = 60.0
"""So long a PoP may take until it serves again: engines are started again after 1, 2, 4 ... s."""
POLL_S = 0.1


@dataclass(slots=True)
class Outcome:
    fault: Fault
    turns: list[Heard] = field(default_factory=list)
    """One in whose middle it happened, two while it lasted, one after; none: the PoP took no call before it."""
    down_s: float | None = None
    """After which /readyz answered 503."""
    back_s: float | None = None
    """After the end of the fault until /readyz answered 200; None: it never did."""
    newcomer: str = "refused"
    """What a caller heard who came while it lasted."""
    unanswered: int = 0
    """How often /readyz gave no answer at all while it lasted."""
    began: float = 0.0
    """Monotonic seconds; 0: it has not begun."""

    @property
    def wrong(self) -> list[str]:
        """What callers or a load balancer should not have seen."""
        if not self.turns:
            return ["no call was taken before it"]
        found = [f"turn {number} unheard" for number, turn in enumerate(self.turns, 1) if not turn.served]
        if any(turn.lost for turn in self.turns):
            found = ["call lost"]
        if self.fault.down_s is None and self.down_s is not None:
            found.append("503 though it serves")
        if self.fault.down_s is not None and (self.down_s is None or self.down_s > self.fault.down_s):
            found.append(f"no 503 within {self.fault.down_s:.0f} s")
        if self.unanswered:
            found.append("/readyz without an answer")
        if self.back_s is None:
            found.append("not back")
        if self.newcomer == "nothing":
            found.append("a new caller heard nothing")
        if "answer" not in self.turns[-1].what:
            found.append("no answer afterwards")
        if self.fault.answers and not all("answer" in turn.what for turn in self.turns):
            found.append("not all answered")
        return found


async def tried(fault: Fault, where: Site) -> Outcome:
    """One call through the fault, and one that comes while it lasts."""
    outcome = Outcome(fault)
    question = await asyncio.to_thread(_question) if fault.hears else None
    async with call(where.pop.url) as caller:
        if caller is None:
            return outcome
        await _turn(caller, question)
        watching = asyncio.create_task(_watch(where, outcome))
        try:
            await _during(outcome, where, caller, question, watching)
        finally:
            if outcome.began:
                await asyncio.to_thread(fault.end, where)
            watching.cancel()
        outcome.back_s = await _back(where)
        outcome.turns.append(await _turn(caller, question))
    return outcome


async def _during(
    outcome: Outcome, where: Site, caller: Caller, question: Pcm | None, watching: asyncio.Task[None]
) -> None:
    """Begin the fault in the middle of a turn; two more turns while it lasts, and a newcomer's."""
    fault = outcome.fault

    def begin() -> None:
        outcome.began = time.monotonic()
        fault.begin(where)

    outcome.turns.append(await _turn(caller, question, begin))
    if not outcome.began:
        begin()  # The reply was over before its first words were told.
    async with call(where.pop.url) as newcomer:  # At once: before /readyz tells of it, if it takes any time.
        if newcomer is not None:
            outcome.newcomer = (await _turn(newcomer, question)).what
    outcome.turns += [await _turn(caller, question) for _ in range(2)]
    if fault.down_s is not None:  # It lasts at least until /readyz has to tell of it.
        left_s = outcome.began + fault.down_s - time.monotonic()
        await asyncio.wait({watching}, timeout=max(0.0, left_s))


async def _turn(caller: Caller, question: Pcm | None, during: object = None) -> Heard:
    change = during if callable(during) else None
    return await (caller.types(change) if question is None else caller.speaks(question, change))


def _question() -> Pcm:
    return clips.speech(next(item for item in clips.load() if item.intent == "hours"), 1).pcm


async def _watch(where: Site, outcome: Outcome) -> None:
    while outcome.down_s is None:
        await asyncio.sleep(POLL_S)
        status = await asyncio.to_thread(where.status)
        if not outcome.began:
            continue
        if status == 503:
            outcome.down_s = time.monotonic() - outcome.began
        outcome.unanswered += status == 0


async def _back(where: Site) -> float | None:
    began = time.monotonic()
    while (took := time.monotonic() - began) < BACK_S:
        if await asyncio.to_thread(where.status) == 200:
            return took
        await asyncio.sleep(POLL_S)
    return None


def run(faults: Sequence[Fault], console: Console) -> list[Outcome]:
    """Each fault, on as few PoPs as will do: a new one where callers speak, and where one was lost."""
    outcomes: list[Outcome] = []
    left = sorted(faults, key=lambda fault: fault.hears)
    while left:
        with tempfile.TemporaryDirectory() as folder, site(Path(folder), hears=left[0].hears) as where:
            hears = left[0].hears
            while left and left[0].hears == hears:
                fault = left.pop(0)
                console.print(f"{fault.name}: {fault.says} ...", highlight=False)
                outcomes.append(asyncio.run(tried(fault, where)))
                if outcomes[-1].wrong and not (where.alive and outcomes[-1].back_s is not None):
                    break  # The next ones get a PoP of their own.
    return outcomes


def show(outcomes: Sequence[Outcome], console: Console) -> None:
    table = Table(
        "broken", "in a turn's middle", "the next turns", "a new call", "/readyz 503", "200 again", "after it", "wrong"
    )
    for outcome in outcomes:
        first, *meanwhile, last = [turn.what for turn in outcome.turns] or ["-", "-"]
        down = "no" if outcome.down_s is None else f"after {outcome.down_s:.1f} s"
        back = "never" if outcome.back_s is None else f"after {outcome.back_s:.1f} s"
        wrong = ", ".join(outcome.wrong) or "-"
        table.add_row(outcome.fault.name, first, ", ".join(meanwhile), outcome.newcomer, down, back, last, wrong)
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    names = [fault.name for fault in FAULTS]
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=f"of {', '.join(names)}; all if none is named")
    chosen = parser.parse_args(arguments).faults
    if unknown := [name for name in chosen if name not in names]:
        parser.error(f"no fault is called {unknown[0]!r}; there are: {', '.join(names)}")
    console = Console() if sys.stdout.isatty() else Console(width=200)
    outcomes = run([fault for fault in FAULTS if not chosen or fault.name in chosen], console)
    show(outcomes, console)
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
