"""voicepipe beside Pipecat, by hand: `make bench-beside`, or `python -m tests.clients.beside`.

A PoP with the default configuration and a bot of Pipecat's (bot.py) with the same recogniser, weights and voice run on
this machine. Each call of the probes is placed on both, one call at a time. Who goes first changes from call to call,
so both see the same machine.

Exit status: 0, 2 not measured, 130 stopped (Ctrl-C) with what there was by then.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from latency_probes.caller import Caller
from latency_probes.command import STOPPED, positive, stoppable
from latency_probes.conversation import converse
from latency_probes.machine import Stolen
from latency_probes.measure import judge_call
from latency_probes.own_server import own_server, started
from latency_probes.plan import SPOKEN, CallPlan, make_plan
from latency_probes.realtime import RealtimeCaller
from latency_probes.records import TurnResult
from tests.clients.beside.caller import BotCaller
from tests.clients.beside.compared import rows, table
from voicepipe.base.errors import EngineMissing, ProbeError
from voicepipe.base.figures import keep
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.weights import hub

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-clients" / "bin" / "python"
OURS, THEIRS = "voicepipe", "Pipecat"
KINDS = ("finished", "human", "pause_inside", "human_pause")
BETWEEN_S = 1.0
"""A side may still work on the end of a call while the other side's begins."""


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, report; returns the exit status."""
    options = parser().parse_args(argv)
    console = Console() if sys.stdout.isatty() else Console(width=170)
    stolen = Stolen()
    # As Ctrl-C, so that servers that are still starting do not outlive us.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with both_sides() as urls:
            comparison = Comparison(callers(urls, options.seed), options.seed)
            stoppable(compare(comparison, options, console))
    except (EngineMissing, ProbeError) as error:
        Console(stderr=True).print(f"{error}", style="red", highlight=False, soft_wrap=True)
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED
    finally:
        if warning := stolen.warning():
            console.print(warning, style="yellow", highlight=False)
    return 0


def parser() -> argparse.ArgumentParser:
    """The options; --help is their documentation."""
    cli = argparse.ArgumentParser(
        prog="python -m tests.clients.beside",
        description="Place the probes' calls on a PoP and on a bot of Pipecat's with the same recogniser and voice, in "
        "turn, and tell what callers hear.",
    )  # fmt: skip
    cli.add_argument("--set", dest="kinds", type=kinds_of, default=KINDS, help=f"default: {','.join(KINDS)}")
    cli.add_argument("--calls", type=positive, help="so many calls of each set (default: every utterance once)")
    cli.add_argument("--seed", type=int, default=1, help="draws order, pauses and noise (default 1)")
    cli.add_argument("--json", type=Path, metavar="FILE", help="write every turn and all figures to this file")
    return cli


def kinds_of(text: str) -> tuple[str, ...]:
    """The sets named in `text`."""
    kinds = tuple(text.split(","))
    if unknown := [kind for kind in kinds if kind not in SPOKEN]:
        raise argparse.ArgumentTypeError(f"no set {unknown[0]!r}: give some of {','.join(SPOKEN)}")
    return kinds


@contextmanager
def both_sides() -> Iterator[Mapping[str, str]]:
    """The addresses of a PoP and of a bot. Raises ProbeError, EngineMissing."""
    if not PYTHON.exists():
        raise ProbeError("Pipecat is not installed: make bench-beside installs it")
    model = hub.local(WhisperConfig().model)
    with own_server() as ours, bot(model) as theirs:
        yield {OURS: ours, THEIRS: theirs}


@contextmanager
def bot(model: Path) -> Iterator[str]:
    """The address of a bot with the weights in `model`. Raises ProbeError."""
    with started((str(PYTHON), "-m", "tests.clients.beside.bot", str(model)), folder=ROOT) as running:
        yield running.url


def callers(urls: Mapping[str, str], seed: int) -> dict[str, Callable[[CallPlan], Caller]]:
    """What makes a call's caller, for each side."""
    return {
        OURS: lambda call: RealtimeCaller(urls[OURS], call.noise, seed),
        THEIRS: lambda call: BotCaller(urls[THEIRS], call.noise, seed),
    }


@dataclass(slots=True)
class Comparison:
    """Places calls on each side, and keeps what they came to."""

    new_caller: Mapping[str, Callable[[CallPlan], Caller]]
    seed: int
    turns: dict[str, list[TurnResult]] = field(default_factory=lambda: {OURS: [], THEIRS: []})
    failures: list[str] = field(default_factory=list)
    """One sentence for every call that failed or ended early."""
    lag_s: float = 0.0
    """The most by which a caller's block left later than its time."""
    calls: int = 0
    """Placed on each side."""

    async def warm(self, call: CallPlan) -> None:
        """Hold it on each side without counting it: a process's first call is slower. Raises ProbeError where a side
        does not take it."""
        for new in self.new_caller.values():
            record = await converse(new(call), call, self.seed)
            if record.failure:
                raise ProbeError(record.failure)

    async def place(self, call: CallPlan) -> None:
        """On each side, in turn."""
        self.calls += 1
        for side in sorted(self.new_caller, reverse=bool(self.calls % 2)):
            record = await converse(self.new_caller[side](call), call, self.seed)
            self.turns[side] += judge_call(record, {})
            self.lag_s = max(self.lag_s, record.lag_s)
            if record.failure:
                self.failures.append(f"{side}: {record.failure}")
            await asyncio.sleep(BETWEEN_S)


async def compare(comparison: Comparison, options: argparse.Namespace, console: Console) -> None:
    """Place the calls of each set; show and keep the figures after each, and where it is stopped."""
    plans = {kind: make_plan((kind,), options.seed, options.calls).calls for kind in options.kinds}
    total, told = sum(map(len, plans.values())), Console(stderr=True, highlight=False)
    first = next(iter(plans.values()))[0]
    await comparison.warm(replace(first, turns=first.turns[:1]))
    for kind, calls in plans.items():
        try:
            for call in calls:
                await comparison.place(call)
                told.print(f"{kind}: {comparison.calls} of {total} calls placed on both sides")
        finally:
            show(comparison, (kind,), console)
            seen = rows(comparison.turns, options.kinds)
            keep(options.json, {"seed": options.seed, "rows": seen, "turns": comparison.turns})
    console.print(f"{len(comparison.failures)} calls failed or ended early", *comparison.failures, sep="\n  ")
    console.print(f"the callers' latest block left {1000 * comparison.lag_s:.0f} ms late", highlight=False)


def show(comparison: Comparison, kinds: Sequence[str], console: Console) -> None:
    """The figures of these sets."""
    if seen := rows(comparison.turns, kinds):
        console.print(table(seen))


if __name__ == "__main__":
    sys.exit(main())
