"""The table of a soak, and what in it must not be."""

from rich.console import Console
from rich.table import Table

from latency_probes.soak import Soaked, counted
from latency_probes.stats import Interval, growth, mean
from voicepipe.base.figures import percentile

MEMORY = {
    "rss_kb": "memory, MB",
    "heap_kb": "of it glibc's blocks in use, MB",
    "blocks": "Python's blocks, thousands",
}
"""Where the first grows and the others do not, it is by what is free among what is used."""
HELD = {
    **MEMORY,
    "tasks": "tasks",
    "threads": "threads",
    "fds": "descriptors",
    "decoders": "decoders",
    "codecs": "Opus coders",
}
"""Figures of /healthz that could grow."""
OURS = {"calls": "calls", "decoders": "decoders in use", "codecs": "Opus coders in use"}
"""Figures of /healthz that are 0 once all calls are over."""
MOST_MB = 1.0
"""An hour."""
HOUR_S = 3600.0


def scale(key: str) -> float:
    return {"rss_kb": 1 / 1024, "heap_kb": 1 / 1024, "blocks": 1 / 1000}.get(key, 1.0)


def grown(seen: Soaked, key: str) -> Interval | None:
    """By the hour, after the warm-up; memory in MB. None: there are too few readings."""
    found = [(reading.at / HOUR_S, scale(key) * reading.figures[key]) for reading in counted(seen)
             if key in reading.figures]  # fmt: skip
    return growth([at for at, _ in found], [value for _, value in found])


def breaches(seen: Soaked) -> list[str]:
    """What must not be and is: sentences."""
    found = []
    if seen.failed:
        found.append(f"{seen.failed} well-behaved calls failed, as: {seen.failures[0]}")
    if lost := sum(seen.lost.values()):
        found.append(f"{lost} turns of well-behaved callers were lost:")
        found += [f"  {loss}" for loss in seen.losses]
    memory = grown(seen, "rss_kb")
    if memory is None:
        found.append("there are too few readings to tell whether it grows")
    elif memory.high > MOST_MB:
        found.append(f"memory may grow by {memory.high:.1f} MB an hour (upper end of 95 %; at most {MOST_MB:.0f}): "
                     "a longer soak says it more closely")  # fmt: skip
    if seen.seconds >= seen.planned_s:  # Of one that was stopped, calls were still going on.
        found += _left(seen)
    for key, name in HELD.items():
        slope = grown(seen, key)
        more = seen.after.get(key, 0) - seen.before.get(key, 0)
        if key not in MEMORY and slope and slope.low > 0 and more > 0:
            found.append(f"{name} grow: {slope.value:+.1f} an hour, and {more:.0f} are left when all calls are over")
    return found


def _left(seen: Soaked) -> list[str]:
    if not seen.after:
        return ["the server told nothing of itself once all calls were over: see whether it still runs"]
    kept = [(seen.after.get(key, 0), name) for key, name in OURS.items()]
    return [f"{count:.0f} {name} are left when all calls are over" for count, name in kept if count]


def show(seen: Soaked, console: Console) -> list[str]:
    """Print the tables; returns what must not be."""
    if seen.seconds < seen.planned_s:
        console.print(f"[red]stopped after {seen.seconds / 60:.0f} of {seen.planned_s / 60:.0f} minutes[/]")
    console.print(held(seen), highlight=False)
    console.print(heard(seen), highlight=False)
    others = ", ".join(
        f"{count} {kind}" + (f" ({seen.shut_out[kind]} shut out)" if kind in seen.shut_out else "")
        for kind, count in sorted(seen.calls.items())
    )
    lag = max((reading.figures.get("loop_lag_p99_ms", 0.0) for reading in seen.readings), default=0.0)
    console.print(f"{seen.seconds / 3600:.2f} hours, {seen.slots} slots; calls: {others}; {seen.failed} failed; "
                  f"worst loop lag p99 {lag:.1f} ms", highlight=False)  # fmt: skip
    found = breaches(seen)
    for breach in found:
        console.print(breach, style="red", highlight=False)
    return found


def held(seen: Soaked) -> Table:
    """What the server held."""
    table = Table("the server's", title="what a soak leaves behind")
    for column in ("before", "mean", "at most", "growth an hour (95 %)", "after"):
        table.add_column(column, justify="right", no_wrap=True)
    for key, name in HELD.items():
        values = [scale(key) * reading.figures[key] for reading in counted(seen) if key in reading.figures]
        if not values:
            continue
        slope = grown(seen, key)
        rate = f"{slope.value:+.2f} ({slope.low:+.2f} to {slope.high:+.2f})" if slope else "-"
        edges = [f"{scale(key) * edge[key]:.0f}" if key in edge else "-" for edge in (seen.before, seen.after)]
        table.add_row(name, edges[0], f"{mean(values):.1f}", f"{max(values):.0f}", rate, edges[1])
    return table


def heard(seen: Soaked) -> Table:
    """What well-behaved callers heard; the gaps are those of answers that were neither early, late nor lost."""
    table = Table("well-behaved callers by", title="their turns, heard gap in ms")
    for column in ("turns", "p50", "p95", "p99", "early", "late", "lost"):
        table.add_column(column, justify="right", no_wrap=True)
    for door in sorted({*seen.gaps, *seen.lost}):
        gaps, others = seen.gaps.get(door, []), [count.get(door, 0) for count in (seen.early, seen.late, seen.lost)]
        figures = ["-" if (ms := percentile(gaps, percent)) is None else f"{ms:.0f}" for percent in (50, 95, 99)]
        table.add_row(door, str(seen.turns(door)), *figures, *map(str, others))
    return table
