"""`python -m tests.observe.upkeep`: what metrics, records, webhooks' spool and traces cost a PoP: processor seconds of
its process, and turn latency.

Two PoPs answer the same calls at the same time, one with all of it and one without. What else the machine does then
slows both; two stretches of the same PoP, one after the other, differ by more than what is measured here.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import httpx

from latency_probes.conversation import converse
from latency_probes.measure import judge_call
from latency_probes.own_server import Started, started
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from latency_probes.stats import difference
from tests.support.spoken import spoken

CALLERS = 8
"""Of each PoP: two PoPs and their callers leave a third of two cores idle."""
WARM_S = 8.0
CALLERS_CORE, POPS_CORE = 0, 1
"""Both PoPs on one core: on a shared machine one core may be a tenth slower than the other for a minute."""
SCRAPE_S = 15.0
BASE = """
# A busy machine makes turns late, and then a PoP would refuse the next calls.
[pop]
price_per_hour = 3.0
budget_ms = 600_000
loop_lag_ms = 60_000
[engines]
asr = "scripted"
[scripted]
hears = ["what are your opening hours"]
"""
OBSERVED = """
[records]
folder = "kept"
lines = "calls.jsonl"
[traces]
endpoint = "{collector}"
"""


class Cost(NamedTuple):
    """Of one stretch of calls."""

    busy: float
    """Processor seconds of the PoP's process in a second."""
    p50_ms: float | None
    """Of the heard gap; None: nothing was answered, so busy was the machine."""
    turns: int
    followers: float = 0.0
    """Processor seconds, in a second, of the event loop for those who follow calls."""
    threads: float = 0.0
    """The same, of all threads beside it, the engines' among them."""


@contextmanager
def collector() -> Iterator[str]:
    """Takes traces, and forgets them."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


async def talk(url: str, number: int, until: float) -> list[float]:
    """One caller after another, until then; the heard gaps in ms."""
    gaps: list[float] = []
    turns = tuple(Turn("upkeep", item) for item in spoken("hours", "parking"))
    for call in range(10_000):
        if time.monotonic() > until:
            return gaps
        seed = 1000 * number + call
        record = await converse(RealtimeCaller(url, "quiet", seed=seed), CallPlan(number, "quiet", turns), seed)
        gaps += [turn.gap_ms for turn in judge_call(record, {}) if turn.gap_ms is not None]
    return gaps


async def scrape(url: str) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        while True:
            await asyncio.sleep(SCRAPE_S)
            await client.get(f"{url}/metrics")


@contextmanager
def observed(folder: Path) -> Iterator[Started]:
    """A PoP with all of it. At its end it writes into the file `took` what its followers took."""
    with collector() as at:
        (folder / "pop.toml").write_text(BASE + OBSERVED.format(collector=at))
        with pop(folder, "tests.observe.timed", str(folder / "took")) as running:
            yield running


@contextmanager
def alone(folder: Path) -> Iterator[Started]:
    """A PoP without."""
    (folder / "pop.toml").write_text(BASE)
    with pop(folder, "tests.observe.unobserved") as running:
        yield running


def pop(folder: Path, *module: str) -> AbstractContextManager[Started]:
    python = ("taskset", "--cpu-list", str(POPS_CORE), sys.executable)
    return started((*python, "-m", *module, "pop", "--port", "0", "--config", str(folder / "pop.toml")))


class Used(NamedTuple):
    """Processor seconds so far."""

    all: float
    threads: float


async def used(running: Started) -> Used:
    async with httpx.AsyncClient(timeout=30) as client:
        health = (await client.get(f"{running.url}/healthz")).json()
    return Used(float(health["cpu_s"]), threads(running.pid))


async def calls(pops: Sequence[Started], scraped: Started, seconds: float) -> list[Cost]:
    """The same calls to all of them at once. What each takes is counted over the same time, though its callers may end
    a little before the others'."""
    until, began = time.monotonic() + seconds, time.monotonic()
    before = [await used(running) for running in pops]
    scraping = asyncio.create_task(scrape(scraped.url))
    gaps = await asyncio.gather(*(talks(running.url, until) for running in pops))
    scraping.cancel()
    after = [await used(running) for running in pops]
    took_s = time.monotonic() - began
    return [
        Cost((end.all - begin.all) / took_s, statistics.median(heard) if heard else None, len(heard),
             threads=(end.threads - begin.threads) / took_s)
        for begin, end, heard in zip(before, after, gaps, strict=True)
    ]  # fmt: skip


async def talks(url: str, until: float) -> list[float]:
    """As `talk`, of all callers of a PoP."""
    gaps = await asyncio.gather(*(talk(url, number, until) for number in range(CALLERS)))
    return [gap for each in gaps for gap in each]


def pair(seconds: float, on_first: bool) -> tuple[Cost, Cost]:
    """The same calls to two fresh PoPs at once: with all of it, and without."""
    with ExitStack() as stack:
        on_folder, off_folder = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        starting = [observed(on_folder), alone(off_folder)]
        first, second = starting if on_first else reversed(starting)
        with first as one, second as other:
            on = one if on_first else other
            asyncio.run(calls((one, other), on, WARM_S))
            found = asyncio.run(calls((one, other), on, seconds))
        took = float((on_folder / "took").read_text())
    on_cost, off_cost = found if on_first else reversed(found)
    return on_cost._replace(followers=took / (seconds + WARM_S)), off_cost


def threads(pid: int) -> float:
    """Processor seconds so far of all threads of this process but the first."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        if task.name != str(pid):
            with suppress(OSError):  # It has ended.
                total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def main(argv: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser("python -m tests.observe.upkeep", description=__doc__)
    options.add_argument("--minutes", type=float, default=10.0, metavar="N", help="of calls to each PoP (default 10)")
    options.add_argument("--rounds", type=int, default=20, metavar="N", help="pairs of fresh PoPs (default 20)")
    asked = options.parse_args(argv)
    os.sched_setaffinity(0, {CALLERS_CORE})
    pairs: list[tuple[Cost, Cost]] = []
    for number in range(asked.rounds):
        on, off = pair(asked.minutes * 60 / asked.rounds, on_first=number % 2 == 0)
        pairs.append((on, off))
        busy = f"{100 * on.busy:.2f} % of a core with, {100 * off.busy:.2f} % without"
        heard = f"p50 {on.p50_ms or 0:.1f} and {off.p50_ms or 0:.1f} ms of {on.turns} and {off.turns} turns"
        print(f"{number + 1}: {busy}, {CALLERS} calls each; {heard}", flush=True)
    report(pairs)
    return 0


def report(pairs: Sequence[tuple[Cost, Cost]]) -> None:
    share = 100 / CALLERS
    for what, per_call, unit in (
        ("processor", [(on.busy * share, off.busy * share) for on, off in pairs], "% of a core a call"),
        ("of it in threads", [(on.threads * share, off.threads * share) for on, off in pairs], "% of a core a call"),
        ("heard gap p50", [(on.p50_ms, off.p50_ms) for on, off in pairs if on.p50_ms and off.p50_ms], "ms"),
    ):
        if found := difference(per_call):
            print(f"{what}: {found.value:+.3f} {unit} (95 % interval {found.low:+.3f} to {found.high:+.3f})")
    followers = statistics.fmean([on.followers for on, _ in pairs])
    print(f"those who follow calls, on the event loop, counted: {share * followers:.4f} % of a core a call")


if __name__ == "__main__":
    sys.exit(main())
