"""Command line: `python -m tests.attacks.cost --old FOLDER`: what an older checkout and this one take, in turn.

The same eight well-behaved calls at a time, by WebSocket, WebRTC and SIP, are placed to a PoP of each, in the same
environment; who goes first changes from round to round. Exit status: 0 measured, 2 not.
"""

import argparse
import asyncio
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from latency_probes.command import STOPPED, positive
from latency_probes.stats import Interval, ratio
from tests.attacks.bench.conditions import AT_A_TIME, Turns, said
from tests.attacks.bench.pop import CHECKOUT, bench_pop
from voicepipe.base.errors import ProbeError
from voicepipe.base.figures import keep


class Round(msgspec.Struct, frozen=True):
    """Both, one after the other."""

    old: Turns
    new: Turns


FIGURES: dict[str, Callable[[Turns], float | None]] = {
    "turn latency p50, ms": lambda turns: turns.latency_p50,
    "turn latency p95, ms": lambda turns: turns.latency_p95,
    "heard gap p50, ms": lambda turns: turns.gap_p50,
    "processor time a call, ms": lambda turns: 1000 * turns.cpu_s / turns.calls if turns.calls else None,
    "processor time a turn, ms": lambda turns: 1000 * turns.cpu_s / turns.turns if turns.turns else None,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, report; returns the exit status."""
    options = parser().parse_args(argv)
    rounds: list[Round] = []
    status = 0
    try:
        for checkout in (options.old, options.new):
            is_checkout(checkout)
        asyncio.run(measure(options, rounds))
    except KeyboardInterrupt:
        status = STOPPED
    except ProbeError as error:
        Console(stderr=True).print(f"{error}", style="red", highlight=False, soft_wrap=True)
        status = 2
    if rounds:
        console = Console() if sys.stdout.isatty() else Console(width=170)
        console.print(table(rounds, markdown=options.markdown), highlight=False)
        console.print("means of the rounds; ratio: geometric mean of the rounds' ratios, with its 95 % confidence "
                      "interval: where 1 is in it, nothing is shown to have changed", highlight=False)  # fmt: skip
        lost = [sum(one.fallback + one.missed + len(one.failures) for one in kind) for kind in
                ([done.old for done in rounds], [done.new for done in rounds])]  # fmt: skip
        console.print(f"turns or calls lost: {lost[0]} of the old one, {lost[1]} of the new one", highlight=False)
        keep(options.json, rounds)
    return status


async def measure(options: argparse.Namespace, rounds: list[Round]) -> None:
    """Raises ProbeError where a PoP does not start, or takes no call."""
    console = Console(stderr=True, highlight=False)
    for number in range(1, options.rounds + 1):
        order = ("old", "new") if number % 2 else ("new", "old")
        found: dict[str, Turns] = {}
        for which in order:
            console.print(f"round {number} of {options.rounds}: {which} ...")
            with bench_pop(getattr(options, which)) as pop:
                await said(pop, AT_A_TIME)  # what is loaded and filled once
                found[which] = await said(pop, options.turns)
            if not found[which].turns:
                raise ProbeError(f"the {which} one answered no call: {found[which].failures[:1]}")
        rounds.append(Round(found["old"], found["new"]))


def is_checkout(folder: Path) -> None:
    """Raises ProbeError where a PoP that is started there would be another one's code."""
    code = "import pathlib, voicepipe; print(pathlib.Path(voicepipe.__file__).resolve().parent.parent)"
    if folder.is_dir():
        found = subprocess.run([sys.executable, "-c", code], cwd=folder, env={"PYTHONPATH": str(folder)},
                               capture_output=True, text=True, check=False)  # fmt: skip
        if found.stdout.strip() == str(folder):
            return
    raise ProbeError(f"{folder} is no checkout of voicepipe: make one, as by `git worktree add {folder} COMMIT`")


def compared(rounds: Sequence[Round], figure: Callable[[Turns], float | None]) -> tuple[float, float, Interval | None]:
    """Means of the old and the new, and the ratio of the new to the old. Rounds without the figure do not count."""
    pairs = [(figure(one.old), figure(one.new)) for one in rounds]
    whole = [(old, new) for old, new in pairs if old and new]
    if not whole:
        return 0.0, 0.0, None
    return sum(old for old, _ in whole) / len(whole), sum(new for _, new in whole) / len(whole), ratio(whole)


def table(rounds: Sequence[Round], *, markdown: bool = False) -> Table:
    """A row for each figure."""
    made = Table(f"{len(rounds)} rounds", box=box.MARKDOWN if markdown else box.SIMPLE_HEAD)
    for column in ("old", "new", "ratio (95 %)"):
        made.add_column(column, justify="right", no_wrap=True)
    for name, figure in FIGURES.items():
        old, new, times = compared(rounds, figure)
        said = f"{times.value:.3f} ({times.low:.3f} to {times.high:.3f})" if times else "-"
        made.add_row(name, f"{old:.1f}", f"{new:.1f}", said)
    return made


def parser() -> argparse.ArgumentParser:
    """The options; --help is their documentation."""
    cli = argparse.ArgumentParser(
        prog="python -m tests.attacks.cost", description="Compare what well-behaved calls take of two checkouts."
    )
    cli.add_argument("--old", type=checkout, required=True, metavar="FOLDER", help="the checkout to compare with")
    cli.add_argument("--new", type=checkout, default=CHECKOUT, metavar="FOLDER", help="instead of this checkout")
    cli.add_argument("--rounds", type=positive, default=6, help="of both, at least 3 for an interval (default 6)")
    cli.add_argument("--turns", type=positive, default=160, help="of each in a round, at least (default 160)")
    cli.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")
    cli.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    return cli


def checkout(text: str) -> Path:
    """As an absolute path without links."""
    return Path(text).resolve()


if __name__ == "__main__":
    sys.exit(main())
