"""`voicepipe pops --compare A B`: two versions, or two PoPs, side by side, and a sentence for each difference."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from rich.table import Table

from voicepipe.base.errors import ConfigError
from voicepipe.base.figures import for_tables
from voicepipe.commands.fleet import headed
from voicepipe.commands.remote_server import RemoteServer
from voicepipe.observe.tally import Tally, added
from voicepipe.observe.version_comparison import (
    FEWEST,
    FEWEST_CALLS,
    SMALL,
    SMALL_MS,
    SURE,
    Comparison,
    Difference,
    MishapRate,
    compared,
)

HOUR_S = 3600.0
MORE = {"cut-ins": "cuts in on more callers", "failures": "fails more", "refusals": "refuses more"}
FEWER = {"cut-ins": "cuts in on fewer callers", "failures": "fails less", "refusals": "refuses less"}


def run(a: str, b: str, directory: RemoteServer) -> int:
    """Print both. Exit status 1 if `b` is worse than `a` in anything. Raises ConfigError: no PoP has such a version or
    name; the directory gives no tallies."""
    answer = directory.asked("GET", "/v1/pops?hour=1")
    rows = [*answer["pops"], *(row for row in answer.get("lost", ()) if row["age_s"] < HOUR_S)]
    comparison = compared(tally_of(a, rows), tally_of(b, rows))
    console = for_tables()
    console.print(table(a, b, comparison))
    for sentence in verdict(a, b, comparison):
        console.print(sentence, markup=False)
    return 1 if comparison.is_worse else 0


def tally_of(name: str, rows: list[Mapping[str, Any]]) -> Tally:
    """The tally of all PoPs of this version, or of the one with this name. Raises ConfigError: there is none."""
    named = [row for row in rows if row.get("version") == name] or [row for row in rows if row["pop"] == name]
    if not named:
        versions = ", ".join(sorted({row["version"] for row in rows if row.get("version")})) or "none is known"
        raise ConfigError(f"--compare: no PoP is of version {name!r}, and none has this name; versions: {versions}")
    return added([msgspec.convert(row["hour"], Tally, str_keys=True) for row in named if row.get("hour")])


def table(a: str, b: str, comparison: Comparison) -> Table:
    """A line for each figure, of turns of the last hour."""
    made = headed("last hour", f">{a}", f">{b}", f">{b} has more", f">with {percent(SURE)} between")
    made.add_row("turns", *(f"{turns}" for turns in comparison.turns))
    one, other = comparison.a, comparison.b
    for name, before, after, difference in (
        ("p50 ms", one.p50, other.p50, None),
        ("p95 ms", one.p95, other.p95, None),
        ("mean ms", one.mean, other.mean, comparison.mean),
        ("turn against turn ms", None, None, comparison.shift),
    ):
        figures = ("" if before is None else f"{before:.0f}", "" if after is None else f"{after:.0f}")
        more = difference.more if difference else (after or 0) - (before or 0)
        made.add_row(name, *figures, f"{more:+.0f}", _between(difference, 1, "ms") if difference else "")
    for rate in comparison.rates:
        figures = (percent(rate.a), percent(rate.b))
        made.add_row(rate.what, *figures, f"{100 * rate.difference.more:+.1f}", _between(rate.difference, 100, "%"))
    return made


def verdict(a: str, b: str, comparison: Comparison) -> Iterator[str]:
    """The verdict in words."""
    few = [*_too_few("turns", (a, b), comparison.turns, FEWEST)]
    few = few or [*_too_few("calls", (a, b), comparison.calls, FEWEST_CALLS)]
    yield from few
    if few:
        return
    found = [
        *_of_latency(b, comparison),
        *(sentence for rate in comparison.rates for sentence in _of_rate(b, rate)),
    ]
    yield from found or [f"No difference seen in {comparison.turns[1]} turns of {b}."]


def _too_few(what: str, names: tuple[str, str], counts: tuple[int, int], fewest: int) -> Iterator[str]:
    for name, count in zip(names, counts, strict=True):
        if count < fewest:
            yield f"{name} has too few {what} yet: {count} of {fewest}."


def _of_latency(b: str, comparison: Comparison) -> Iterator[str]:
    shift, mean = comparison.shift, comparison.mean
    if shift.is_worse(SMALL_MS):
        yield f"{b} is slower by {shift.more:.0f} ms ({_between(shift, 1, 'ms')})."
    elif mean.is_worse(SMALL_MS):
        yield (
            f"{b} is slower in the mean, by {mean.more:.0f} ms ({_between(mean, 1, 'ms')}); "
            "turn against turn no difference is seen."
        )
    elif shift.is_better(SMALL_MS):
        yield f"{b} is quicker by {-shift.more:.0f} ms ({-shift.most:.0f} to {-shift.least:.0f} ms)."


def _of_rate(b: str, rate: MishapRate) -> Iterator[str]:
    of = "calls" if rate.what == "refusals" else "turns"
    for is_so, does in ((rate.difference.is_worse, MORE), (rate.difference.is_better, FEWER)):
        if is_so(SMALL):
            yield f"{b} {does[rate.what]}: {percent(rate.b)} against {percent(rate.a)} of {of}."


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _between(difference: Difference, times: float, unit: str) -> str:
    if math.isinf(difference.least):
        return ""
    digits = 1 if unit == "%" else 0
    return f"{times * difference.least:.{digits}f} to {times * difference.most:.{digits}f} {unit}"
