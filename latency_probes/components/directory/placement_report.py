"""What became of the calls of `placement.py`: rows of figures, and the tables. Pure but for `show`."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

import msgspec
from rich.console import Console
from rich.table import Table

from voicepipe.base.figures import percentile
from voicepipe.directory.router import FARTHEST_MS, FILLING, PLAYOUT_MS

WITHIN_MS, AIM_WITHIN = 10.0, 0.95
AIM_ERROR_MS = 30.0
JUDGED = "reckoned - heard", "predicted - turn latency"
PLAYOUT = PLAYOUT_MS["websocket"]
CAPTION = """reckoned: turn_ms_est, round trip + 40 ms playout + the PoP's predicted turn latency (p95, with one more)
heard: the caller's heard gap, with the round trip on the wire, + 40 ms that a caller's own end would hold back
predicted: reckoned without round trip and playout; turn latency: as the server told of that turn
round trip: what the caller told, or the map says, against what is on the wire"""


class PopThen(msgspec.Struct, frozen=True):
    """A PoP at the moment of a choice. Times in ms."""

    pop: str
    near_ms: float
    """Its true round trip, and playout."""
    has_room: bool
    in_budget: bool
    """It would answer one more call within its budget."""
    load: float
    """Of its slots, with one more call."""


class PlacementTurn(msgspec.Struct, frozen=True):
    """One turn of a call. Times in ms."""

    pop: str
    reckoned_ms: float
    """`turn_ms_est` of the PoP that took the call."""
    gap_ms: float
    """Heard gap; the round trip is in it."""
    latency_ms: float | None
    """Turn latency, by the server's own record."""
    true_ms: float
    """Round trip on the wire."""
    taken_ms: float
    """What the directory took it for: what the caller told, or what the map says."""


class PlacementCall(msgspec.Struct):
    """One call."""

    city: str
    pops: list[PopThen]
    pop: str = ""
    """The first candidate; empty: there was none."""
    degraded: bool = False
    turns: list[PlacementTurn] = []
    """Those that were answered and not cut in on."""
    missing: int = 0
    """The others of a call that a PoP took."""
    tries: int = 0
    """PoPs that were called."""
    failure: str = ""


def best_ms(placed: PlacementCall) -> float | None:
    """How near the best eligible PoP was: of those with room that would answer in time; where none would, of those with
    room. None: no PoP had room."""
    room = [pop for pop in placed.pops if pop.has_room]
    in_time = [pop for pop in room if pop.in_budget and pop.near_ms <= FARTHEST_MS]
    return min((pop.near_ms for pop in in_time or room), default=None)


def behind_ms(placed: PlacementCall) -> float | None:
    """By how much the chosen PoP is farther than the best eligible one. None: nothing could be chosen."""
    chosen = next((pop for pop in placed.pops if pop.pop == placed.pop), None)
    best = best_ms(placed)
    return None if chosen is None or best is None else chosen.near_ms - best


def misses(placed: PlacementCall) -> bool | None:
    """Whether the call did not go to a PoP about as near as the best eligible one: it was sent farther, or nowhere, or
    the first candidate turned it away. None: no PoP had room, so there was nothing to choose."""
    if best_ms(placed) is None:
        return None
    behind = behind_ms(placed)
    return behind is None or behind > WITHIN_MS or placed.tries != 1 or bool(placed.failure)


def nearest_fills(placed: PlacementCall) -> bool:
    """Whether the best eligible PoP had begun to share with others that are nearly as near."""
    best = best_ms(placed)
    return any(pop.near_ms == best and pop.load > FILLING for pop in placed.pops)


def errors(turns: Sequence[PlacementTurn]) -> dict[str, list[float]]:
    """What was reckoned less what was measured, by what is compared; each in order of size."""
    named = {
        "reckoned - heard": [turn.reckoned_ms - turn.gap_ms - PLAYOUT for turn in turns],
        "reckoned - heard gap (without playout)": [turn.reckoned_ms - turn.gap_ms for turn in turns],
        "predicted - turn latency": [
            predicted_ms(turn) - turn.latency_ms for turn in turns if turn.latency_ms is not None
        ],
        "round trip taken - on the wire": [turn.taken_ms - turn.true_ms for turn in turns],
        "heard gap - turn latency - round trip": [
            turn.gap_ms - turn.latency_ms - turn.true_ms for turn in turns if turn.latency_ms is not None
        ],
    }
    return {name: sorted(values) for name, values in named.items()}


def predicted_ms(turn: PlacementTurn) -> float:
    """The part of the estimate that is the PoP's own."""
    return turn.reckoned_ms - turn.taken_ms - PLAYOUT


def show(calls: Sequence[PlacementCall], bus: str, console: Console) -> bool:
    """Print the tables; whether the aims are held."""
    console.print(_cities(calls, bus))
    turns, missing = [turn for placed in calls for turn in placed.turns], sum(placed.missing for placed in calls)
    console.print(_errors(turns))
    placeable = [placed for placed in calls if misses(placed) is not None]
    astray = [placed for placed in placeable if misses(placed)]
    share, fills = 1 - len(astray) / max(1, len(placeable)), sum(map(nearest_fills, astray))
    console.print(
        f"to a PoP within {WITHIN_MS:.0f} ms of the best eligible one: {len(placeable) - len(astray)} of "
        f"{len(placeable)} calls ({share:.1%}); of the others {fills} went elsewhere since that PoP fills"
    )
    console.print(f"turns without an answer, or cut in on: {missing}; percentiles count them as errors without end")
    for failure, count in Counter(placed.failure for placed in calls if placed.failure).most_common(5):
        console.print(f"  {count} x {failure}")
    missed = [f"p90 of |{name}| is {worst:.0f} ms, at most {AIM_ERROR_MS:.0f}" for name in JUDGED
              if (worst := worst_ms(turns, name, missing)) > AIM_ERROR_MS]  # fmt: skip
    if share < AIM_WITHIN:
        missed.append(f"{share:.1%} within {WITHIN_MS:.0f} ms, at least {AIM_WITHIN:.0%}")
    for aim in missed:
        console.print(f"[red]missed:[/] {aim}")
    return not missed


def worst_ms(turns: Sequence[PlacementTurn], name: str, missing: int) -> float:
    """p90 of the absolute error, `missing` turns among them."""
    return percentile([*map(abs, errors(turns)[name]), *[float("inf")] * missing], 90) or 0.0


def _cities(calls: Sequence[PlacementCall], bus: str) -> Table:
    table = Table(title=f"{len(calls)} calls placed, {bus}; times in ms")
    table.add_column("city", no_wrap=True)
    columns = ("calls", "to", "shortest round trip", "within 10 ms", "degraded", "tried others")
    for column in (*columns, "heard gap p50", "reckoned p50"):
        table.add_column(column, justify="right")
    for city in sorted({placed.city for placed in calls}):
        mine = [placed for placed in calls if placed.city == city]
        turns = [turn for placed in mine for turn in placed.turns]
        chosen = Counter(placed.pop for placed in mine if placed.pop)
        missed = [its for placed in mine if (its := misses(placed)) is not None]
        table.add_row(
            city, str(len(mine)), ", ".join(f"{pop} {count}" for pop, count in chosen.most_common()),
            f"{min((pop.near_ms for pop in mine[0].pops), default=0) - PLAYOUT:.0f}",
            f"{missed.count(False)} of {len(missed)}", str(sum(placed.degraded for placed in mine)),
            str(sum(placed.tries > 1 for placed in mine)), *(f"{median(values):.0f}" if values else "-" for values in
            ([turn.gap_ms for turn in turns], [turn.reckoned_ms for turn in turns])),
        )  # fmt: skip
    return table


def _errors(turns: Sequence[PlacementTurn]) -> Table:
    table = Table(title=f"what the directory reckons, {len(turns)} turns; ms", caption=CAPTION, caption_justify="left")
    table.add_column("compared", no_wrap=True)
    for column in ("p10", "p50", "p90", "p90 of the absolute error", "turns"):
        table.add_column(column, justify="right")
    for name, values in errors(turns).items():
        absolute = percentile([abs(value) for value in values], 90) or 0.0
        found = (f"{percentile(values, percent) or 0.0:+.0f}" for percent in (10, 50, 90))
        table.add_row(name, *found, f"{absolute:.0f}", str(len(values)))
    return table
