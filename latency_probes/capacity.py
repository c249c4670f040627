"""How many WebRTC calls one process holds: more and more of them, until its event loop is late.

Each caller asks a question every few seconds and listens. What they send is encoded beforehand and what they get is
only counted, so that the generator takes less of its core than the server of its own.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from latency_probes import clips
from latency_probes.run import processor_seconds
from latency_probes.soak import figures
from latency_probes.sound import bed, mixed
from latency_probes.stats import percentile
from latency_probes.timeline import BLOCK, WIRE_RATE
from latency_probes.webrtc import Placed, place
from voicepipe.audio import opus
from voicepipe.errors import ProbeError
from voicepipe.rtp.clock import MediaClock
from voicepipe.rtp.packet import is_rtcp

LAG_MS = 20.0
"""A process whose loop is later than this (p99) holds too many calls."""
ROUND_S = 8
"""A caller asks once in so many seconds."""
SETTLE_S = 40.0
"""The server's lag is that of its last half minute."""
SLOTS = 1000


class Step(msgspec.Struct):
    """What so many calls at a time were like."""

    calls: int
    loop_lag_p99_ms: float
    turns: int
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    """Server's turn latency of the turns of this step."""
    packets_a_second: float
    """That a caller got; 50 are sent."""
    generator: float
    """Of one core: near 1 it is the generator that is measured."""


class Asker:
    """One call; `payloads` over and over, each caller in another place of it."""

    def __init__(self, placed: Placed, payloads: list[bytes], number: int) -> None:
        self.placed = placed
        self.packets = 0
        self.latencies: list[float] = []
        self._payloads = payloads
        self._at = number * 37 % len(payloads)
        placed.transport.on_media = self._media
        placed.channel.on("message", self._message)

    def tick(self, now: float) -> None:
        """A packet more."""
        self.placed.send(self._payloads[self._at % len(self._payloads)])
        self._at += 1

    def _media(self, data: bytes, arrived: float) -> None:
        self.packets += not is_rtcp(data)

    def _message(self, message: str) -> None:
        if '"response.done"' in message[:200]:
            metadata = msgspec.json.decode(message)["response"]["metadata"] or {}
            record = msgspec.json.decode(metadata.get("voicepipe.turn", "{}"))
            if (latency := record.get("turn_latency")) is not None:
                self.latencies.append(latency)


@contextmanager
def roomy() -> Iterator[tuple[str, ...]]:
    """Options of a PoP that refuses nobody."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "roomy.toml"
        manifest.write_text(f"[pop]\nslots = {SLOTS}\nbudget_ms = 60000\n")
        yield ("--pop", str(manifest))


async def capacity(url: str, more: int, key: str, agent: str, told: Callable[[Step], None]) -> list[Step]:
    """Add `more` calls at a time until the server's loop is late, or takes no more; cancelled, the steps so far.

    Raises ProbeError: not one call can be placed.
    """
    payloads = await asyncio.to_thread(question)
    clock, askers, steps = MediaClock(), list[Asker](), list[Step]()
    ticking = asyncio.create_task(clock.run())
    try:
        while not steps or steps[-1].loop_lag_p99_ms <= LAG_MS:
            for _ in range(more):
                asker = Asker(await place(url, key, agent), payloads, len(askers))
                askers.append(asker)
                clock.add(asker.tick)
                await asyncio.sleep(0.1)
            steps.append(await held(url, askers))
            told(steps[-1])
    except (ProbeError, asyncio.CancelledError):
        if not steps:
            raise
    finally:
        ticking.cancel()
        for asker in askers:
            await asker.placed.transport.close()
    return steps


async def held(url: str, askers: list[Asker]) -> Step:
    """These calls for a while."""
    for asker in askers:
        asker.packets, asker.latencies = 0, []
    began, cpu = time.monotonic(), processor_seconds()
    await asyncio.sleep(SETTLE_S)
    took = time.monotonic() - began
    share = (processor_seconds() - cpu) / took
    seen = await asyncio.to_thread(figures, url)
    latencies = [latency for asker in askers for latency in asker.latencies]
    packets = sum(asker.packets for asker in askers) / len(askers) / took
    p50, p95 = percentile(latencies, 50), percentile(latencies, 95)
    return Step(len(askers), seen["loop_lag_p99_ms"], len(latencies), p50, p95, packets, share)


def question() -> list[bytes]:
    """Opus packets of a caller's round: a question in a quiet room, and silence for its answer."""
    item = next(item for item in clips.load(["finished"]) if (item.intent, item.noise) == ("hours", "quiet"))
    said = clips.speech(item, 1).pcm
    blocks = mixed(np.pad(said, (WIRE_RATE, ROUND_S * WIRE_RATE - said.size - WIRE_RATE)), bed("quiet", 1), 0)
    encode = opus.Encoder(WIRE_RATE)
    return [encode(block) for block in blocks.reshape(-1, BLOCK)]


def show(steps: list[Step], console: Console) -> None:
    """The table, and the answer."""
    table = Table(title="WebRTC calls at a time")
    for column in ("calls", "loop lag p99 ms", "turns", "latency p50", "p95 ms", "packets/s", "generator"):
        table.add_column(column, justify="right", no_wrap=True)
    for step in steps:
        table.add_row(str(step.calls), f"{step.loop_lag_p99_ms:.1f}", str(step.turns), number(step.latency_p50_ms),
                      number(step.latency_p95_ms), f"{step.packets_a_second:.1f}",
                      f"{step.generator:.0%} of a core")  # fmt: skip
    console.print(table)
    kept = [step.calls for step in steps if step.loop_lag_p99_ms <= LAG_MS]
    console.print(f"one process holds {max(kept, default=0)} calls at a loop lag p99 of at most {LAG_MS:.0f} ms")


def number(value: float | None) -> str:
    """A figure, or that there is none."""
    return "-" if value is None else f"{value:.0f}"
