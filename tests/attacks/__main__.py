"""Command line: `python -m tests.attacks`: what well-behaved callers notice of each attack.

Exit status: 0 nothing, 1 something, 2 not measured, 130 stopped (Ctrl-C) with what there was by then.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from latency_probes.command import STOPPED, positive
from latency_probes.machine import MUCH
from tests.attacks.bench import table
from tests.attacks.bench.attacker import STRANGERS
from tests.attacks.bench.conditions import Result, one_result
from tests.attacks.bench.discovery import found
from voicepipe.base.errors import ProbeError
from voicepipe.base.figures import keep

TRIES = 4
"""A run is made again where the machine's host kept much of its cores: it says nothing of an attack. The last one
counts, and the table shows what was stolen."""


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, report; returns the exit status."""
    options = parser().parse_args(argv)
    says = {name: attack.says for name, attack in found().items()}
    says[STRANGERS] = "all that need no key at the same time, from 50 addresses, 10 Mbit/s in all"
    console = Console() if sys.stdout.isatty() else Console(width=220)
    if options.list:
        console.print("\n".join(f"{name:28}{said}" for name, said in says.items()), highlight=False)
        return 0
    if unknown := [name for name in options.only if name not in says]:
        Console(stderr=True).print(f"there is no attack {unknown[0]!r}: --list shows those that there are", style="red")
        return 2
    by_attack: dict[str, list[Result]] = {}
    status = 0
    try:
        asyncio.run(measure(options, options.only or list(says), by_attack))
    except KeyboardInterrupt:
        status = STOPPED
    except ProbeError as error:
        Console(stderr=True).print(f"{error}", style="red", highlight=False, soft_wrap=True)
        status = 2
    if by_attack:
        breaches = table.show(by_attack, console, markdown=options.markdown)
        status = status or bool(breaches)
    return status


async def measure(options: argparse.Namespace, names: Sequence[str], by_attack: dict[str, list[Result]]) -> None:
    """Every attack once, then every attack again: what changes on this machine meanwhile hits them alike."""
    attacks = found()
    console = Console(stderr=True, highlight=False)
    for run in range(1, options.runs + 1):
        for name in names:

            def told(what: str, title: str = f"run {run} of {options.runs}: {name}") -> None:
                console.print(f"{title}: {what} ...")

            holds_key = name in attacks and not attacks[name].by_stranger
            for _ in range(TRIES):
                result = await one_result(name, options.seconds, options.turns, holds_key, told)
                if result.stolen <= MUCH:
                    break
                told(f"the machine's host kept {result.stolen:.0%} of its cores for others: once more")
            by_attack.setdefault(name, []).append(result)
            keep(options.json, by_attack)


def parser() -> argparse.ArgumentParser:
    """The options; --help is their documentation."""
    cli = argparse.ArgumentParser(
        prog="python -m tests.attacks",
        description="Place well-behaved calls to a PoP of its own, without and with each attack beside them, at "
        "loopback alone, and tell what they notice.",
    )  # fmt: skip
    cli.add_argument("--only", action="append", default=[], metavar="NAME", help="this attack; may be given repeatedly")
    cli.add_argument("--seconds", type=float, default=20.0, help="of one attack, five of which follow (default 20)")
    cli.add_argument("--turns", type=positive, default=300, help="at least, without and with each (default 300)")
    cli.add_argument("--runs", type=positive, default=3, help="of which the medians are shown (default 3)")
    cli.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")
    cli.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    cli.add_argument("--list", action="store_true", help="show the attacks that there are")
    return cli


if __name__ == "__main__":
    sys.exit(main())
