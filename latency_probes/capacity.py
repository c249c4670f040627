"""How many calls one process holds: more and more of them, until its event loop is late.

Each caller asks a question every few seconds and listens. What they send is encoded beforehand and what they get is
only counted, so that the generator takes less of its core than the server of its own. How late the answers were is
the server's own figure, read from its dashboard once a step: nobody beside a call makes it dearer.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from latency_probes import clips
from latency_probes.health import figures, latencies
from latency_probes.run import processor_seconds
from latency_probes.sip import dialled
from latency_probes.sound import bed, mixed
from latency_probes.timeline import BLOCK, WIRE_RATE
from latency_probes.webrtc import PacketSink, place
from voicepipe.audio import Pcm, g711, opus
from voicepipe.audio.resample import Resampler
from voicepipe.base.errors import ProbeError
from voicepipe.base.figures import percentile
from voicepipe.rtp.clock import MediaClock
from voicepipe.rtp.packet import is_rtcp

LAG_MS = 20.0
"""A process whose loop is later than this (p99) holds too many calls."""
ROUND_S = 8
"""A caller asks once in so many seconds."""
SETTLE_S = 40.0
"""The server's lag is that of its last half minute."""
SLOTS = 1000
OFFER_S = 0.5
"""Between two calls that are offered: what each makes of the server is seen by the next."""


class Step(msgspec.Struct):
    """What so many calls at a time were like."""

    calls: int
    loop_lag_p99_ms: float
    turns: int
    """Timed ones of this step, of the newest 300."""
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    """Server's turn latency of these turns."""
    packets_a_second: float
    """That a caller got; 50 are sent."""
    server: float
    generator: float
    """Processor time of both, of one core: with the generator near 1 it is that which is measured."""


class Call(Protocol):
    """A call that is up."""

    def send(self, payload: bytes) -> None:
        """20 ms of sound, as it is encoded."""

    async def hang_up(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Way:
    """How calls are placed, and what they carry."""

    name: str
    place: Callable[[PacketSink], Awaitable[Call]]
    encoder: Callable[[], Callable[[Pcm], bytes]]
    """Of int16[480] at 24 kHz."""


def ways(url: str, phone: str, key: str, agent: str) -> dict[str, Way]:
    """By the names that `--by` has for them. `phone`: where the telephone is, as `SipCaller` has it."""

    def pcmu() -> Callable[[Pcm], bytes]:
        down = Resampler(WIRE_RATE, g711.RATE, in_step=True)
        return lambda pcm: g711.encode("pcmu", down(pcm))

    return {
        "webrtc": Way("WebRTC", lambda sink: place(url, key, agent, sink=sink), lambda: opus.OpusEncoder(WIRE_RATE)),
        "sip": Way("SIP", lambda sink: dialled(url, phone, agent, sink.datagram), pcmu),
    }


class Asker:
    """One call; `payloads` over and over, each caller in another place of it."""

    def __init__(self, payloads: list[bytes], number: int) -> None:
        self.packets = 0
        self._payloads = payloads
        self._at = number * 37 % len(payloads)
        self._call: Call | None = None

    async def dial(self, way: Way) -> None:
        """Raises ProbeError."""
        self._call = await way.place(self)

    def tick(self, now: float) -> None:
        """A packet more."""
        assert self._call
        self._call.send(self._payloads[self._at % len(self._payloads)])
        self._at += 1

    async def hang_up(self) -> None:
        assert self._call
        await self._call.hang_up()

    def datagram(self, data: bytes, arrived: float) -> None:
        """As `PacketSink.datagram`."""
        self.packets += not is_rtcp(data)


@contextmanager
def roomy(*, refuses: bool = False) -> Iterator[tuple[str, ...]]:
    """Options of a PoP that has a slot for everybody, and refuses nobody; or `refuses` those who would be late."""
    limits = "" if refuses else "budget_ms = 60000\nloop_lag_ms = 60000\n"
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "roomy.toml"
        manifest.write_text(f"[pop]\nslots = {SLOTS}\n{limits}")
        yield ("--pop", str(manifest))


async def capacity(way: Way, url: str, key: str, more: int, told: Callable[[Step], None]) -> list[Step]:
    """Add `more` calls at a time until the server's loop is late, or takes no more; cancelled, the steps so far.

    Raises ProbeError: not one call can be placed, or the server shows no figures.
    """
    payloads = await asyncio.to_thread(question, way)
    clock, askers, steps = MediaClock(), list[Asker](), list[Step]()
    ticking = asyncio.create_task(clock.run())
    try:
        while not steps or steps[-1].loop_lag_p99_ms <= LAG_MS:
            for _ in range(more):
                asker = Asker(payloads, len(askers))
                await asker.dial(way)
                askers.append(asker)
                clock.add(asker.tick)
                await asyncio.sleep(0.1)
            steps.append(await held(url, key, askers))
            told(steps[-1])
    except (ProbeError, asyncio.CancelledError):
        if not steps:
            raise
    finally:
        ticking.cancel()
        await asyncio.gather(*(asker.hang_up() for asker in askers))
    return steps


async def offered(way: Way, url: str, key: str, calls: int) -> tuple[Step, int]:
    """So many calls, two a second; those that are let in are held for a while. How these are, and how many were
    refused. Raises ProbeError: all were, or the server shows no figures."""
    payloads = await asyncio.to_thread(question, way)
    clock, askers, why = MediaClock(), list[Asker](), ProbeError("no call was placed")
    ticking = asyncio.create_task(clock.run())
    try:
        for number in range(calls):
            asker = Asker(payloads, number)
            try:
                await asker.dial(way)
            except ProbeError as error:
                why = error
            else:
                askers.append(asker)
                clock.add(asker.tick)
            await asyncio.sleep(OFFER_S)
        if not askers:
            raise why
        return await held(url, key, askers), calls - len(askers)
    finally:
        ticking.cancel()
        await asyncio.gather(*(asker.hang_up() for asker in askers))


async def held(url: str, key: str, askers: Sequence[Asker]) -> Step:
    """These calls for a while."""
    for asker in askers:
        asker.packets = 0
    before, began, cpu = await asyncio.to_thread(figures, url), time.monotonic(), processor_seconds()
    await asyncio.sleep(SETTLE_S)
    took = time.monotonic() - began
    share = (processor_seconds() - cpu) / took
    packets = sum(asker.packets for asker in askers) / len(askers) / took
    seen = await asyncio.to_thread(figures, url)
    server = (seen["cpu_s"] - before["cpu_s"]) / took
    late = await asyncio.to_thread(latencies, url, key, took)
    p50, p95 = percentile(late, 50), percentile(late, 95)
    return Step(len(askers), seen["loop_lag_p99_ms"], len(late), p50, p95, packets, server, share)


def show_offered(way: Way, step: Step, refused: int, console: Console) -> None:
    """How they were, in a line."""
    p50, p95 = number(step.latency_p50_ms), number(step.latency_p95_ms)
    console.print(
        f"{step.calls + refused} calls by {way.name} offered: {step.calls} let in, {refused} refused; "
        f"{step.turns} turns of those let in, latency p50 {p50}, p95 {p95} ms; "
        f"loop lag p99 {step.loop_lag_p99_ms:.1f} ms"
    )


def question(way: Way) -> list[bytes]:
    """Packets of a caller's round: a question in a quiet room, and silence for its answer."""
    item = next(item for item in clips.load(["finished"]) if (item.intent, item.noise) == ("hours", "quiet"))
    said = clips.speech(item, 1).pcm
    blocks = mixed(np.pad(said, (WIRE_RATE, ROUND_S * WIRE_RATE - said.size - WIRE_RATE)), bed("quiet", 1), 0)
    encode = way.encoder()
    return [encode(block) for block in blocks.reshape(-1, BLOCK)]


def show(way: Way, steps: list[Step], console: Console) -> None:
    """The table, and the answer."""
    table = Table(title=f"calls by {way.name} at a time", caption="server, generator: of one core")
    for column in ("calls", "loop lag p99 ms", "turns", "latency p50", "p95 ms", "packets/s", "server", "generator"):
        table.add_column(column, justify="right", no_wrap=True)
    for step in steps:
        table.add_row(str(step.calls), f"{step.loop_lag_p99_ms:.1f}", str(step.turns), number(step.latency_p50_ms),
                      number(step.latency_p95_ms), f"{step.packets_a_second:.1f}",
                      f"{step.server:.0%}", f"{step.generator:.0%}")  # fmt: skip
    console.print(table)
    kept = [step.calls for step in steps if step.loop_lag_p99_ms <= LAG_MS]
    most = max(kept, default=0)
    console.print(f"one process holds {most} calls by {way.name} at a loop lag p99 of at most {LAG_MS:.0f} ms")


def number(value: float | None) -> str:
    """A figure, or that there is none."""
    return "-" if value is None else f"{value:.0f}"
