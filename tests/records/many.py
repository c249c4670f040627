"""`python -m tests.records.many`: how long a PoP takes to list its calls and to open one, where 10,000 are kept."""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from latency_probes.own_server import COMMAND, started
from tests.records.kept_calls import HOST, call, said
from voicepipe.observe.call_followers import CallEnd
from voicepipe.records.store import Store

TURNS = 6
ROUNDS = 20
CONFIG = """
[records]
folder = "kept"
keep_days = 36500
[engines]
asr = "scripted"
llm = "scripted"
tts = "scripted"
"""


def fill(path: Path, calls: int) -> None:
    """Write so many calls, each of `TURNS` turns."""
    store = Store(path, HOST)
    with store.transaction():
        for number in range(calls):
            one = call(number, tenant="local")
            store.began(one)
            for turn in range(TURNS):
                store.said(one.id, said(one, turn, 120.0 + number % 300, heard=f"question {turn} of call {number}"))
            store.ended(one, CallEnd(reason="caller", at=one.since + 60))
    store.close()


@contextmanager
def pop(folder: Path, calls: int) -> Iterator[str]:
    """The address of a PoP that keeps so many calls in `folder`."""
    kept = folder / "kept"
    kept.mkdir()
    if calls:
        fill(kept / "local.db", calls)
    (folder / "pop.toml").write_text(CONFIG)
    with started((*COMMAND, "--config", str(folder / "pop.toml"))) as its:
        yield its.url


def timed(client: httpx.Client, path: str) -> float:
    """Milliseconds. Raises httpx.HTTPStatusError."""
    began = time.perf_counter()
    client.get(path).raise_for_status()
    return (time.perf_counter() - began) * 1000


def measured(url: str) -> dict[str, float]:
    """Medians and the slowest of `ROUNDS`, in ms; the PoP's memory before and after, in MB."""
    with httpx.Client(base_url=url, timeout=60) as client:
        rows = client.get("/v1/records?limit=1000").json()["data"]
        before = client.get("/healthz").json()["rss_kb"] / 1024
        ways = {
            "list": ["/v1/records"] * ROUNDS,
            "list_by_caller": ["/v1/records?caller=123456&since=0"] * ROUNDS,
            "open": [f"/v1/records/{rows[number * 37 % len(rows)]['id']}" for number in range(ROUNDS)],
            "costs": ["/v1/costs?since=0"] * ROUNDS,
        }
        found: dict[str, float] = {}
        for name, paths in ways.items():
            took = [timed(client, path) for path in paths]
            found[f"{name}_ms"], found[f"{name}_slowest_ms"] = statistics.median(took), max(took)
        after = client.get("/healthz").json()["rss_kb"] / 1024
    return found | {"memory_before_mb": before, "memory_after_mb": after}


def main(argv: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser("python -m tests.records.many", description=__doc__)
    options.add_argument("--calls", type=int, default=10_000, metavar="N", help="that are kept (default 10000)")
    calls = options.parse_args(argv).calls
    for kept in (0, calls):
        with tempfile.TemporaryDirectory() as folder, pop(Path(folder), kept or 1) as url:
            figures = measured(url)
        print(f"{kept or 1} calls: " + ", ".join(f"{name} {value:.1f}" for name, value in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
