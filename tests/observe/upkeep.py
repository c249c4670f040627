"""`python -m tests.observe.upkeep`: what metrics, records, webhooks' spool and traces cost a PoP, on and off in turn:
processor seconds of its process, and turn latency, under the same calls."""

import argparse
import asyncio
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import httpx

from latency_probes.conversation import converse
from latency_probes.measure import judge_call
from latency_probes.own_server import started
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from tests.spoken import spoken

CALLERS = 6
SCRAPE_S = 15.0
BASE = """
[pop]
price_per_hour = 3.0
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
    p50_ms: float
    """Of the heard gap."""
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


async def calls(url: str, seconds: float, scraped: bool) -> Cost:
    until = time.monotonic() + seconds
    async with httpx.AsyncClient(timeout=30) as client:
        scraping = asyncio.create_task(scrape(url)) if scraped else None
        before, began = (await client.get(f"{url}/healthz")).json()["cpu_s"], time.monotonic()
        gaps = await asyncio.gather(*(talk(url, number, until) for number in range(CALLERS)))
        after, took_s = (await client.get(f"{url}/healthz")).json()["cpu_s"], time.monotonic() - began
        if scraping:
            scraping.cancel()
    flat = [gap for each in gaps for gap in each]
    return Cost((after - before) / took_s, statistics.median(flat), len(flat))


def stretch(observed: bool, seconds: float) -> Cost:
    """Calls to a fresh PoP."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        tables = BASE
        if observed:
            tables += OBSERVED.format(collector=stack.enter_context(collector()))
        (folder / "pop.toml").write_text(tables)
        options = ("pop", "--port", "0", "--config", str(folder / "pop.toml"))
        which = ("tests.observe.timed", str(folder / "took")) if observed else ("tests.observe.unobserved",)
        with started((sys.executable, "-m", *which, *options)) as pop:
            asyncio.run(calls(pop.url, 5, False))  # The first calls warm it up.
            before = threads(pop.pid)
            cost = asyncio.run(calls(pop.url, seconds, observed))
            beside = threads(pop.pid) - before
        took = float((folder / "took").read_text()) if observed else 0.0
        return cost._replace(followers=took / seconds, threads=beside / seconds)


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
    options.add_argument("--minutes", type=float, default=10.0, metavar="N", help="of calls, each way (default 10)")
    options.add_argument("--rounds", type=int, default=4, metavar="N", help="stretches, each way (default 4)")
    asked = options.parse_args(argv)
    seconds = asked.minutes * 60 / asked.rounds
    found: dict[bool, list[Cost]] = {True: [], False: []}
    for number in range(asked.rounds):
        for observed in ((False, True), (True, False))[number % 2]:
            cost = stretch(observed, seconds)
            found[observed].append(cost)
            print(f"{'on ' if observed else 'off'}: {100 * cost.busy:.2f} % of a core with {CALLERS} calls, p50 "
                  f"{cost.p50_ms:.1f} ms of {cost.turns} turns", flush=True)  # fmt: skip
    on, off = (found[True], found[False])
    busy = statistics.fmean([cost.busy for cost in on]) - statistics.fmean([cost.busy for cost in off])
    spread = max(max(cost.busy for cost in way) - min(cost.busy for cost in way) for way in (on, off))
    beside = statistics.fmean([cost.threads for cost in on]) - statistics.fmean([cost.threads for cost in off])
    followers = statistics.fmean([cost.followers for cost in on])
    p50 = statistics.median([cost.p50_ms for cost in on]) - statistics.median([cost.p50_ms for cost in off])
    print(f"on - off: {100 * busy / CALLERS:+.3f} % of a core a call, where stretches of one kind differ by up to "
          f"{100 * spread / CALLERS:.3f} %; p50 {p50:+.1f} ms")  # fmt: skip
    print(f"counted: {100 * followers / CALLERS:.4f} % on the event loop, {100 * beside / CALLERS:+.4f} % in threads")
    return 0


if __name__ == "__main__":
    sys.exit(main())
