"""Many short calls one after another, and what the server's own figures make of them."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec
from rich.console import Console

from latency_probes import clips
from latency_probes.caller import Caller
from latency_probes.conversation import converse
from latency_probes.plan import CallPlan, Turn
from latency_probes.stats import slope
from voicepipe.errors import ProbeError

WARM_UP = 50
"""Calls that do not count: pools fill and caches warm."""

Figures = Mapping[str, float]


class Growth(msgspec.Struct):
    """What `calls` calls left behind in the server, after those of the warm-up."""

    calls: int
    """That ended: fewer than were planned where the run was stopped."""
    planned: int
    counted: int
    failures: list[str]
    rss_kb_per_call: float | None
    """Slope by least squares."""
    tasks: float | None
    threads: float | None
    fds: float | None
    """Growth from the first counted figure to the last."""
    worst_loop_lag_p99_ms: float | None


async def soak(url: str, calls: int, new_caller: Callable[[CallPlan], Caller], advance: Callable[[], None]) -> Growth:
    """Hold `calls` calls of one question each, hang up when the answer begins, and read /healthz after each.

    Cancelled, it returns what grew so far. Raises ProbeError where no call can be placed, or the server shows none.
    """
    questions = [item for item in await asyncio.to_thread(clips.load, ["finished"]) if item.noise == "quiet"]
    seen, failures = [await asyncio.to_thread(figures, url)], []
    with suppress(asyncio.CancelledError):
        for number in range(calls):
            plan = CallPlan(number, "quiet", (Turn("soak", questions[number % len(questions)]),))
            record = await converse(new_caller(plan), plan, seed=0)
            if record.failure:
                failures.append(record.failure)
            if not number and not record.timeline.sent:
                raise ProbeError(record.failure)
            seen.append(await asyncio.to_thread(figures, url))
            advance()
    return growth(seen[1:], calls, failures)


def growth(seen: Sequence[Figures], planned: int, failures: list[str]) -> Growth:
    """What grew over `seen`, the figures after each call; the first 50 do not count where there are more than 100."""
    counted = seen[WARM_UP:] if len(seen) > 2 * WARM_UP else seen

    def grown(key: str) -> float | None:
        values = [figure[key] for figure in counted if key in figure]
        return values[-1] - values[0] if values else None

    return Growth(
        calls=len(seen),
        planned=planned,
        counted=len(counted),
        failures=failures,
        rss_kb_per_call=slope([figure["rss_kb"] for figure in counted if "rss_kb" in figure]),
        tasks=grown("tasks"),
        threads=grown("threads"),
        fds=grown("fds"),
        worst_loop_lag_p99_ms=max((figure.get("loop_lag_p99_ms", 0.0) for figure in counted), default=None),
    )


def vitals(url: str) -> str:
    """One line on how the server is after a run, as far as it tells."""
    try:
        seen = figures(url)
    except ProbeError:
        return "the server shows no figures of its own"
    lag = seen.get("loop_lag_p99_ms", 0.0)
    return f"the server's event loop ran {lag:.1f} ms late (p99 of its last half minute)"


def figures(url: str) -> dict[str, float]:
    """The numbers of /healthz on the server behind `url` (ws or http). Blocks; raises ProbeError."""
    found = _got(url, "/healthz")
    return {key: float(value) for key, value in found.items() if isinstance(value, int | float)}


def latencies(url: str, key: str, seconds: float) -> list[float]:
    """Turn latencies, in ms, that the server's dashboard lists of its last `seconds`, 300 at most; `key` may see them.

    Blocks; raises ProbeError.
    """
    view = _got(url, "/v1/dashboard?minutes=5", key)
    turns = [turn for turn in view["turns"] if turn["at"] >= view["now"] - seconds]
    return [turn["latency_ms"] for turn in turns if turn["latency_ms"] is not None]


def _got(url: str, path: str, key: str = "") -> dict[str, Any]:
    parts = urlsplit(url if "://" in url else f"ws://{url}")
    address = f"{parts.scheme.replace('ws', 'http')}://{parts.netloc}{path}"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=5) as answer:
            return msgspec.json.decode(answer.read(), type=dict[str, Any])
    except (OSError, urllib.error.URLError, msgspec.DecodeError) as error:
        raise ProbeError(f"the server's own figures are needed, and {address} has none: {error}") from error


def show(growth: Growth, console: Console) -> None:
    """Print what grew."""

    def number(value: float | None, unit: str = "") -> str:
        return "-" if value is None else f"{value:+.1f}{unit}"

    if growth.calls < growth.planned:
        console.print(f"[red]stopped after {growth.calls} of {growth.planned} calls[/]")
    console.print(
        f"{growth.calls} calls, {len(growth.failures)} failed; over the last {growth.counted}: "
        f"memory {number(growth.rss_kb_per_call, ' kB a call')}, tasks {number(growth.tasks)}, "
        f"threads {number(growth.threads)}, file descriptors {number(growth.fds)}, "
        f"worst loop lag p99 {number(growth.worst_loop_lag_p99_ms, ' ms')}"
    )
