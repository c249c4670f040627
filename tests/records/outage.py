"""`python -m tests.records.outage`: a receiver of records is down for ten minutes, and the PoP is killed and started
again meanwhile. Every record must arrive."""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import websockets

from latency_probes.own_server import COMMAND, Started, started
from tests.records.receiver import SECRET, Receiver, receiving
from tests.records.typist import Typist
from tests.support.ports import free_port

CONFIG = """
[pop]
agents = "agents"
budget_ms = 600000
loop_lag_ms = 60000
drain_ms = 1000
[http]
port = {port}
[records]
folder = "kept"
[engines]
asr = "scripted"
llm = "scripted"
tts = "scripted"
"""
AGENT = 'name = "front-desk"\ngreeting = "Good day."\n[hooks]\nafter_call = "{url}"\nsecret_env = "HOOK"\n'
EVERY_S = 3.0
"""How long a call lasts, and a bit more."""


def start(stack: ExitStack, folder: Path) -> Started:
    command = (*COMMAND[:-2], "--config", str(folder / "pop.toml"))
    return stack.enter_context(started(command, os.environ | {"HOOK": SECRET}))


async def call(url: str) -> None:
    with suppress(OSError, websockets.WebSocketException):
        async with Typist(url) as typist:
            await typist.asks("when are you open")
            await asyncio.sleep(EVERY_S)


async def talk(url: str, until: float) -> None:
    """Short calls, one after the other; the last one may be cut."""
    while (left_s := until - time.monotonic()) > 0:
        with suppress(TimeoutError):
            await asyncio.wait_for(call(url), left_s)


def kept(url: str) -> set[str]:
    """The ids of all calls that have ended."""
    rows, cursor = [], ""
    with httpx.Client(base_url=url, timeout=60) as client:
        while True:
            said = client.get("/v1/records", params={"limit": 1000, **({"before": cursor} if cursor else {})}).json()
            rows += said["data"]
            if not (cursor := said["next"] or ""):
                return {row["id"] for row in rows if row["ended"]}


def run(minutes: float, folder: Path) -> tuple[set[str], Receiver, float]:
    """Calls that were kept, who was told of them, and how many seconds after its return the last one was told."""
    port, receiver_port = free_port(), free_port()
    agents = folder / "agents"
    agents.mkdir()
    (agents / "front-desk.toml").write_text(AGENT.format(url=f"http://127.0.0.1:{receiver_port}/after-call"))
    (folder / "pop.toml").write_text(CONFIG.format(port=port))
    half_s = minutes * 30
    with ExitStack() as stack:
        first = start(stack, folder)
        asyncio.run(talk(first.url, time.monotonic() + half_s))
        os.kill(first.pid, signal.SIGKILL)
    with ExitStack() as stack:
        second = start(stack, folder)
        asyncio.run(talk(second.url, time.monotonic() + half_s))
        time.sleep(1)
        calls = kept(second.url)
        receiver = stack.enter_context(receiving(receiver_port))
        back = time.monotonic()
        while {event["data"]["id"] for event in receiver.told} < calls and time.monotonic() - back < 900:
            time.sleep(0.2)
        return calls, receiver, time.monotonic() - back


def main(argv: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser("python -m tests.records.outage", description=__doc__)
    options.add_argument("--minutes", type=float, default=10.0, metavar="N", help="of the outage (default 10)")
    minutes = options.parse_args(argv).minutes
    with tempfile.TemporaryDirectory() as folder:
        calls, receiver, took_s = run(minutes, Path(folder))
    told = {event["data"]["id"] for event in receiver.told}
    print(f"{len(calls)} calls in {minutes:g} minutes of outage, the PoP killed in between; "
          f"{len(calls & told)} arrived, the last one {took_s:.0f} s after the receiver was back; "
          f"{len(receiver.told) - len(told)} twice")  # fmt: skip
    return 0 if told >= calls else 1


if __name__ == "__main__":
    sys.exit(main())
