"""What a call by a directory takes longer than one straight to the PoP.

Three ways in turn, call by call: straight to the PoP with a key; asking the directory, then to the PoP with its token;
relayed by the directory. One PoP with scripted engines, all over loopback.
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import track
from rich.table import Table

from latency_probes.components.directory import calls, fleet
from latency_probes.components.directory.calls import GREETS, LISTENS
from latency_probes.realtime import RealtimeCaller
from latency_probes.via import Via
from voicepipe.base.errors import ProbeError
from voicepipe.base.figures import for_tables, keep, percentile

STRAIGHT, ASKED, RELAYED = "straight to the PoP", "asked, then straight", "relayed by the directory"
AIM_SETUP_MS, AIM_GAP_MS = 15.0, 2.0
REST_S = 0.05
"""Between two calls: what the last one has left is over."""
CAPTION = """set-up: ms from the handshake's beginning, or from asking the directory, to the greeting's first sound
heard gap: ms from the caller's last voiced sample to the answer's first sound; once asked, a call is a straight one
more: than straight, of the same percentile"""

NewCaller = Callable[[str], RealtimeCaller]
"""Of the agent to call."""


class Taken(msgspec.Struct):
    """What calls of one way took, in ms."""

    setups: list[float]
    gaps: list[float]


async def run(count: int, json_file: Path | None) -> int:
    """Measure and print; 1: an aim is missed. Raises ConfigError: something does not start, ProbeError: calls fail, or
    `json_file` cannot be written."""
    console = for_tables()
    taken, bus = await measured(count, console)
    keep(json_file, {"bus": bus, "taken": taken})
    return 0 if show(taken, bus, console) else 1


async def measured(count: int, console: Console) -> tuple[dict[str, Taken], str]:
    """`count` set-ups of each way, and as many turns of those two whose turns differ; what the fleet speaks by. Raises
    ConfigError, ProbeError."""
    kind = fleet.PopKind(calls.ENGINES, calls.AGENTS, budget_ms=60_000)
    with tempfile.TemporaryDirectory() as folder:
        async with fleet.running(Path(folder), {"here": fleet.HERE}, kind) as up:
            return await _alternated(ways(up), count, console), up.bus


def ways(up: fleet.Fleet) -> dict[str, NewCaller]:
    """How callers reach the PoP."""

    def asks(agent: str) -> RealtimeCaller:
        via = Via(up.url, "websocket", up.key, agent, rtt_ms={"here": 1.0})
        return RealtimeCaller("", calls.NOISE, calls.SEED, agent=agent, via=via)

    return {
        STRAIGHT: lambda agent: calls.straight(up.pops["here"], up.key, agent),
        ASKED: asks,
        RELAYED: lambda agent: calls.straight(up.url, up.key, agent),
    }


async def _alternated(callers: Mapping[str, NewCaller], count: int, console: Console) -> dict[str, Taken]:
    said = await calls.question()
    taken = {way: Taken([], []) for way in callers}
    names = list(callers)
    for call in callers.values():  # Once unmeasured: whatever is made at the first call is there.
        await calls.greeted(call(GREETS))
    for number in track(range(count), "rounds", console=console, transient=True, disable=not console.is_terminal):
        for way in names[number % len(names) :] + names[: number % len(names)]:
            taken[way].setups.append(await calls.greeted(callers[way](GREETS)))
            await asyncio.sleep(REST_S)
            if way != ASKED:
                (turn,) = await calls.asked(callers[way](LISTENS), said)
                taken[way].gaps.append(_gap_ms(turn.gap_ms, turn.cut_in))
                await asyncio.sleep(REST_S)
    return taken


def _gap_ms(gap: float | None, cut_in: bool) -> float:
    if gap is None or cut_in:
        raise ProbeError(f"a turn was {'cut in on' if cut_in else 'not answered'}: is this machine overloaded?")
    return gap


def more(taken: Mapping[str, Taken], way: str, figure: str, percent: float) -> float:
    """Milliseconds by which this percentile of `figure` ("setups", "gaps") is over that of straight calls."""
    than, those = (percentile(getattr(taken[name], figure), percent) or 0.0 for name in (STRAIGHT, way))
    return those - than


def show(taken: Mapping[str, Taken], bus: str, console: Console) -> bool:
    """Print the table; whether the aims are held."""
    count = len(taken[STRAIGHT].setups)
    table = Table(title=f"calls straight and by a directory, {count} of each in turn, {bus}", caption=CAPTION,
                  caption_justify="left")  # fmt: skip
    table.add_column("way", no_wrap=True)
    for column in ("set-up p50", "p95", "more p50", "p95", "heard gap p50", "p95", "more p50", "p95"):
        table.add_column(column, justify="right")
    for way, its in taken.items():
        figures: list[str] = []
        for name, values in (("setups", its.setups), ("gaps", its.gaps)):
            figures += ["" if (ms := percentile(values, percent)) is None else f"{ms:.1f}" for percent in (50, 95)]
            figures += [f"{more(taken, way, name, percent):+.1f}" if values and way != STRAIGHT else ""
                        for percent in (50, 95)]  # fmt: skip
        table.add_row(way, *figures)
    console.print(table)
    missed = [f"{way}: set-up p95 {late:+.1f} ms, at most {AIM_SETUP_MS:+.0f}" for way in (ASKED, RELAYED)
              if (late := more(taken, way, "setups", 95)) > AIM_SETUP_MS]  # fmt: skip
    if (late := more(taken, RELAYED, "gaps", 50)) > AIM_GAP_MS:
        missed.append(f"{RELAYED}: median heard gap {late:+.1f} ms, at most {AIM_GAP_MS:+.0f}")
    for aim in missed:
        console.print(f"[red]over the aim:[/] {aim}")
    return not missed
