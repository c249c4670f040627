"""`python -m tests.fleet`: break one part of a fleet after another under load, and tell what callers noticed.

Exit status: 0 as it should be, 1 worse.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.directory.nats_server import PROGRAM
from tests.fleet import faults, namespaces
from tests.fleet.checker import Bounds
from tests.fleet.crowd import crowded
from tests.fleet.learning import distances_learned
from tests.fleet.losses import bus_lost_for_long, most_nats_killed, region_killed
from tests.fleet.network import Loopback, Network
from tests.fleet.pushes import pushed
from tests.fleet.rig import Plan, Rig, running
from tests.fleet.scale import Outcome, Scale
from tests.fleet.strangers import strangers
from tests.fleet.upgrades import keys_replaced, upgraded
from voicepipe.base.figures import keep

POPS = {"fra": "eu", "lhr": "eu", "par": "eu", "iad": "us", "ord": "us", "sfo": "us", "nrt": "ap", "sin": "ap",
        "bom": "ap"}  # fmt: skip
SLOTS = 8
LONG = Scale(
    Bounds(),
    per_second=12.0,
    set_ups=3000,
    dead_s=10.0,
    cut_s=60.0,
    paused_s=10.0,
    hold_s=(0.5, 2.0),
    patience_s=3.0,
    healed_s=3.0,
    up_s=120.0,
)
CROWD, RUNS, MOST = 100, 5, 3.0
BUS_LOST_S = 90.0
FAULTS: dict[str, Callable[[Rig, Scale], Awaitable[Outcome]]] = {
    "calm-sip": partial(faults.undisturbed, kind="sip"),
    "kill": faults.pops_killed,
    "kill-sip": partial(faults.pops_killed, kind="sip"),
    "kill-twilio": partial(faults.pops_killed, kind="twilio"),
    "kill-telnyx": partial(faults.pops_killed, kind="telnyx"),
    "drain": faults.drained,
    "directory": faults.directory_killed,
    "directory-sip": partial(faults.directory_killed, kind="sip"),
    "directory-twilio": partial(faults.directory_killed, kind="twilio"),
    "directory-telnyx": partial(faults.directory_killed, kind="telnyx"),
    "nats": faults.nats_killed,
    "bus": faults.bus_killed,
    "quorum": most_nats_killed,
    "bus-long": partial(bus_lost_for_long, lost_s=BUS_LOST_S),
    "cut": faults.region_cut_off,
    "region": region_killed,
    "pause": faults.pop_paused,
    "clock": faults.clocks_wrong,
    "crowd": partial(crowded, crowd=CROWD, runs=RUNS, most=MOST),
    "strangers": strangers,
    "zone": faults.zone_dead,
    "push": pushed,
    "learned": distances_learned,
    "upgrade": upgraded,
    "keys": keys_replaced,
}


def main(arguments: Sequence[str] | None = None) -> int:
    cli = parser()
    options = cli.parse_args(arguments)
    if unknown := [name for name in options.faults if name not in FAULTS]:
        cli.error(f"no fault is called {unknown[0]!r}; there are: {', '.join(FAULTS)}")
    console = Console() if sys.stdout.isatty() else Console(width=200)
    if PROGRAM is None:
        console.print("nats-server is missing (Debian: apt install nats-server)")
        return 2
    if not options.loopback and not namespaces.inside():
        if not (why := namespaces.forbidden()):
            again = (*namespaces.ENTER, sys.executable, "-m", "tests.fleet", *(arguments or sys.argv[1:]))
            os.execvpe(again[0], again, {**os.environ, namespaces.INSIDE: "1"})
        console.print(f"No network namespaces here ({why}): all runs on loopback.", highlight=False)
    outcomes = run(options.faults or list(FAULTS), options.set_ups, options.seconds, console)
    console.print(table(outcomes))
    keep(options.json, {outcome.fault: outcome._asdict() for outcome in outcomes})
    return 1 if any(outcome.broken for outcome in outcomes) else 0


def run(names: Sequence[str], set_ups: int, seconds: float, console: Console) -> list[Outcome]:
    """Each of these faults, on one fleet; those that begin within so many seconds."""
    outcomes: list[Outcome] = []
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="fleet") as made:
        folder = Path(made)
        network: Network = namespaces.Namespaces(folder) if namespaces.inside() else Loopback(folder)
        console.print(
            "loopback" if isinstance(network, Loopback) else f"a wide-area network: {told()}", highlight=False
        )
        with running(Plan(POPS, SLOTS), folder, network) as rig:
            for name in names:
                if time.monotonic() > deadline:
                    console.print(f"{name}: not tried, {seconds:.0f} s are over", highlight=False)
                    continue
                if "telnyx" in name and not isinstance(network, Loopback):
                    console.print(
                        f"{name}: only with --loopback: elsewhere PoPs have to be reached by https", highlight=False
                    )
                    continue
                began = time.monotonic()
                outcomes.append(asyncio.run(tried(name, rig, LONG._replace(set_ups=set_ups))))
                took = time.monotonic() - began
                console.print(f"{name} ({took:.0f} s): {outcomes[-1].saw}", highlight=False)
                for line in outcomes[-1].broken[:20]:
                    console.print(f"  broken: {line}", highlight=False)
    return outcomes


async def tried(name: str, rig: Rig, scale: Scale) -> Outcome:
    """One that cannot be carried out to its end is one that is broken."""
    try:
        return await FAULTS[name](rig, scale)
    except (TimeoutError, AssertionError) as error:
        return Outcome(name, "", "it did not come to its end", [f"{type(error).__name__}: {error}"])


def told() -> str:
    """What lies between regions."""
    trips = ", ".join(f"{ways.replace(' ', '-')} {ms:.0f} ms" for ways, ms in namespaces.ROUND_TRIPS_MS.items())
    return f"{trips}; {namespaces.LOSS:.1%} lost between regions"


def table(outcomes: Sequence[Outcome]) -> Table:
    """A row for each fault."""
    made = Table("fault", "should be", "was seen", "broken", show_lines=True)
    for outcome in outcomes:
        broken = outcome.broken[:5] + ([f"... and {len(outcome.broken) - 5} more"] if len(outcome.broken) > 5 else [])
        made.add_row(outcome.fault, outcome.should, outcome.saw, "\n".join(broken) or "-")
    return made


def parser() -> argparse.ArgumentParser:
    """The options; --help is their documentation."""
    cli = argparse.ArgumentParser(prog="python -m tests.fleet", description=__doc__)
    cli.add_argument("faults", nargs="*", metavar="FAULT", help=f"of {', '.join(FAULTS)}; all if none is named")
    cli.add_argument("--set-ups", type=int, default=LONG.set_ups, metavar="N",
                     help="while PoPs are killed (default %(default)s)")  # fmt: skip
    cli.add_argument("--seconds", type=float, default=3600.0, metavar="S",
                     help="begin no fault after this (default %(default)g)")  # fmt: skip
    cli.add_argument("--loopback", action="store_true", help="without network namespaces, also where they are allowed")
    cli.add_argument("--json", type=Path, metavar="FILE", help="write what was seen there, too")
    return cli


if __name__ == "__main__":
    sys.exit(main())
