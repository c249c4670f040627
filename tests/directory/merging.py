"""`python -m tests.directory.merging`: how long a directory's event loop does nothing else while it makes one list of
those that 40 PoPs have sent, of 1,000 records each."""

import argparse
import asyncio
import multiprocessing
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from random import Random
from typing import Any

import httpx
import msgspec

from tests.directory.fleets import SIGNER, served
from tests.directory.stub_pops import tell
from tests.records.kept_calls import LONG_AGO, call, said
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.observe.call_followers import CallEnd
from voicepipe.records.record import RecordedHost, summary

ROUNDS = 7


def rows(pop: int, calls: int) -> bytes:
    """What one PoP answers, the newest first."""
    host, ends = RecordedHost(f"p{pop}", "eu-central", 60, 3.6), CallEnd(reason="caller", at=LONG_AGO + 90_000)
    made = [call(pop * calls + number) for number in range(calls)]
    random = Random(pop)
    facts = [msgspec.structs.replace(each, since=LONG_AGO + random.uniform(0, 86_400)) for each in made]
    facts.sort(key=lambda each: (each.since, each.id), reverse=True)
    data = [summary(each, host, [said(each, 0)], ends) for each in facts]
    return msgspec.json.encode({"object": "list", "data": data, "next": "more"})


def answer(pops: int, calls: int, told: Connection) -> None:
    """A process that answers as all of them, each below a path of its own; tells its port."""
    lists = {f"/p{pop}": rows(pop, calls) for pop in range(pops)}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = lists[self.path.partition("/v1/")[0]]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    told.send(server.server_address[1])
    server.serve_forever()


@contextmanager
def answering(pops: int, calls: int) -> Iterator[str]:
    """Their address."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=answer, args=(pops, calls, there), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.kill()
        process.join()


class Steps:
    """Of the event loop: the longest, in ms by the clock, and in ms of its thread's processor time, which does not grow
    when other programs take the processor."""

    def __init__(self) -> None:
        self.by_clock = self.by_processor = 0.0

    async def watch(self) -> None:
        """Until cancelled."""
        clock, processor = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(0)
            now, used = time.perf_counter(), time.thread_time()
            self.by_clock = max(self.by_clock, (now - clock) * 1000)
            self.by_processor = max(self.by_processor, (used - processor) * 1000)
            clock, processor = now, used


async def measured(pops: int, calls: int, limit: int) -> tuple[list[Steps], list[float]]:
    """Of each round: the loop's longest step, and how many ms the answer took."""
    bus = MemoryBus()
    directory = Directory(bus, SIGNER, Random(0), clock=lambda: 1000.0)
    rounds, took = list[Steps](), list[float]()
    with answering(pops, calls) as url:
        for pop in range(pops):
            tell(directory, f"p{pop}", url=f"{url}/p{pop}")
        async with served(directory, bus) as at:
            for _ in range(ROUNDS):
                rounds.append(steps := Steps())
                watching = asyncio.create_task(steps.watch())
                began = time.perf_counter()
                said = await asyncio.to_thread(listed, f"{at.url}/v1/records?limit={limit}")
                took.append((time.perf_counter() - began) * 1000)
                watching.cancel()
                await asyncio.wait({watching})
                assert len(said["data"]) == min(limit, pops * calls) and not said["missing"], said["missing"]
    return rounds, took


def listed(url: str) -> Any:
    """What the directory answers."""
    return httpx.get(url, headers={"Authorization": "Bearer k-acme"}, timeout=60).json()


def main(argv: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser("python -m tests.directory.merging", description=__doc__)
    options.add_argument("--pops", type=int, default=40)
    options.add_argument("--calls", type=int, default=1000, help="that each lists (default 1000)")
    asked = options.parse_args(argv)
    rounds, took = asyncio.run(measured(asked.pops, asked.calls, asked.calls))
    clock, processor = [steps.by_clock for steps in rounds], [steps.by_processor for steps in rounds]
    print(f"{asked.pops} PoPs, {asked.calls} calls each. The loop's longest step, median of {ROUNDS} rounds: "
          f"{statistics.median(clock):.1f} ms (at most {max(clock):.1f}), of its processor time "
          f"{statistics.median(processor):.1f} ms (at most {max(processor):.1f}). The answer took "
          f"{statistics.median(took):.0f} ms")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
