"""`python -m tests.records.agree`: what a PoP's records and its histogram say of turns, against what probes heard of
the same turns."""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from prometheus_client.parser import text_string_to_metric_families

from latency_probes.conversation import converse
from latency_probes.measure import judge_call
from latency_probes.own_server import COMMAND, own_server
from latency_probes.plan import CallPlan, make_plan
from latency_probes.realtime import RealtimeCaller
from latency_probes.records import TurnResult
from voicepipe.base.figures import percentile
from voicepipe.observe.turn_metrics import LATENCY_S

SEED = 3
CONCURRENCY = 2
CONFIG = '[records]\nfolder = "kept"\n[pop]\nbudget_ms = 600000\nloop_lag_ms = 60000\n'


class Agreement(NamedTuple):
    """Of the same turns, in ms."""

    turns: int
    heard: tuple[float, float]
    """p50 and p95, by the probes."""
    kept: tuple[float, float]
    """By the records."""
    worst: float
    """The largest difference of one turn."""
    buckets: tuple[int, int]
    """How many buckets lie between the records' p50, and p95, and those of the histogram."""


async def place(url: str, plan: CallPlan) -> list[TurnResult]:
    caller = RealtimeCaller(url, plan.noise, seed=SEED + plan.number)
    return judge_call(await converse(caller, plan, seed=SEED), {})


async def placed(url: str, calls: int) -> list[TurnResult]:
    """All turns of so many calls, `CONCURRENCY` at a time."""
    plans = make_plan(["finished"], SEED, calls).calls
    room, results = asyncio.Semaphore(CONCURRENCY), list[TurnResult]()

    async def one(plan: CallPlan) -> None:
        async with room:
            results.extend(await place(url, plan))

    async with asyncio.TaskGroup() as group:
        for plan in plans:
            group.create_task(one(plan))
    return results


def kept(url: str) -> dict[str, float]:
    """Turn latency in the records, by the turn's id."""
    found: dict[str, float] = {}
    with httpx.Client(base_url=url, timeout=60) as client:
        for row in client.get("/v1/records?limit=1000").json()["data"]:
            for said in client.get(f"/v1/records/{row['id']}").json()["said"]:
                if said["spoken"] and said["turn"]["latency_ms"] is not None:
                    found[said["turn"]["id"]] = said["turn"]["latency_ms"]
    return found


def histogram(url: str) -> list[tuple[float, float]]:
    """Bounds in seconds, and how many turns were not later."""
    families = text_string_to_metric_families(httpx.get(f"{url}/metrics").text)
    samples: list[Any] = [sample for family in families for sample in family.samples]
    counts: dict[float, float] = {}
    for sample in samples:
        if sample.name == "voicepipe_turn_latency_seconds_bucket":
            bound = float(sample.labels["le"])
            counts[bound] = counts.get(bound, 0) + sample.value
    return sorted(counts.items())


def bucket(ms: float) -> int:
    return sum(bound < ms / 1000 for bound in LATENCY_S)


def bucket_of(counts: list[tuple[float, float]], percent: float) -> int:
    """The bucket in which this percentile lies."""
    total = counts[-1][1]
    return next(number for number, (_, below) in enumerate(counts) if below >= total * percent / 100)


def agreement(url: str, calls: int) -> Agreement:
    results = asyncio.run(placed(url, calls))
    by_records = kept(url)
    pairs = [
        (turn.gap_ms, by_records[turn.labels["turn_id"]])
        for turn in results
        if turn.gap_ms is not None and not turn.cut_in and turn.labels.get("turn_id") in by_records
    ]
    heard, its = sorted(gap for gap, _ in pairs), sorted(latency for _, latency in pairs)
    counts, all_kept = histogram(url), sorted(by_records.values())
    p = [(percentile(values, 50) or 0.0, percentile(values, 95) or 0.0) for values in (heard, its, all_kept)]
    apart = [abs(bucket(p[2][place]) - bucket_of(counts, percent)) for place, percent in ((0, 50), (1, 95))]
    return Agreement(len(pairs), p[0], p[1], max(abs(gap - latency) for gap, latency in pairs), (apart[0], apart[1]))


def main(argv: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser("python -m tests.records.agree", description=__doc__)
    options.add_argument("--calls", type=int, default=24, metavar="N", help="default 24")
    calls = options.parse_args(argv).calls
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pop.toml").write_text(CONFIG)
        with own_server((*COMMAND, "--config", f"{folder}/pop.toml")) as url:
            found = agreement(url, calls)
    print(f"{found.turns} turns: p50 {found.heard[0]:.0f} ms heard, {found.kept[0]:.0f} kept; p95 "
          f"{found.heard[1]:.0f} heard, {found.kept[1]:.0f} kept; one turn differs by {found.worst:.0f} ms at most; "
          f"the histogram's p50 and p95 are {found.buckets[0]} and {found.buckets[1]} buckets from theirs")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
