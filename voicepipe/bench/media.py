"""`voicepipe bench media`: what one WebRTC call's media cost, both ways, beside stock aiortc in the same run.

Calls are placed from this process to a child, whose processor time counts: Opus both ways, SRTP, RTP, the jitter
buffer, playout and its pacing; no engine. What this process sends was encoded beforehand, and what it gets is not
decoded.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from voicepipe.audio import opus
from voicepipe.bench.media_server import RATE, spoken
from voicepipe.rtp import sdp
from voicepipe.rtp.clock import MediaClock
from voicepipe.rtp.codec import OPUS
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.transport import Network, Transport

SETTLE_S = 3.0
"""Nothing is counted before calls have been up for so long."""
KINDS = ("voicepipe", "aiortc")


class Cost(msgspec.Struct):
    """What the far end's process took. Packets are of 20 ms; a call has 50 a second each way."""

    cpu_s: float
    wall_s: float
    lag_p99_ms: float
    heard: int
    sent: int


async def run(calls: int, seconds: float) -> int:
    """Measure and print both."""
    console = Console(highlight=False)
    encode = opus.Encoder(RATE)
    payloads = [encode(block) for block in (await spoken()).reshape(-1, RATE // 50)]
    table = Table(title=f"media of {calls} calls, Opus and SRTP both ways, {seconds:.0f} s each")
    table.add_column("engine")
    for column in ("% of a core, a call", "loop lag p99 ms", "heard/s", "sent/s"):
        table.add_column(column, justify="right", no_wrap=True)
    for kind in KINDS:
        with console.status(f"{calls} calls to {kind} ..."):
            cost = await measured(kind, payloads, calls, seconds)
        each = calls * cost.wall_s
        table.add_row(kind, f"{100 * cost.cpu_s / each:.2f}", f"{cost.lag_p99_ms:.1f}", f"{cost.heard / each:.1f}",
                      f"{cost.sent / each:.1f}")  # fmt: skip
    console.print(table)
    return 0


async def measured(kind: str, payloads: list[bytes], calls: int, seconds: float) -> Cost:
    """The cost of `calls` calls at a time with the far end `kind`."""
    clock = MediaClock()
    callers = [Caller(payloads) for _ in range(calls)]
    ticking = asyncio.create_task(clock.run())
    try:
        async with far_end(kind) as ask:
            for caller in callers:
                await caller.dial(ask)
                clock.add(caller.tick)
            await asyncio.sleep(SETTLE_S)
            await ask(start=1)
            await asyncio.sleep(seconds)
            return msgspec.convert(await ask(stop=1), Cost)
    finally:
        ticking.cancel()
        for caller in callers:
            await caller.transport.close()


class Caller:
    """Sends the same speech over and over."""

    def __init__(self, payloads: list[bytes]) -> None:
        self.transport = Transport(Network(), controlling=True)
        self._payloads = payloads
        self._sent = 0
        self._type = 0

    async def dial(self, ask: Any) -> None:
        """Raises ConnectionError, SdpError."""
        offer = sdp.offer(self.transport, await self.transport.gather(), (OPUS,))
        said = sdp.read((await ask(offer=offer))["answer"])
        self._type = said.payload_type
        await self.transport.connect(said.remote)

    def tick(self, now: float) -> None:
        """A packet more."""
        n, self._sent = self._sent, self._sent + 1
        payload = self._payloads[n % len(self._payloads)]
        self.transport.send_rtp(bytes(RtpPacket(self._type, n & 0xFFFF, n * 960 & 0xFFFFFFFF, 7, payload)))


@asynccontextmanager
async def far_end(kind: str) -> AsyncIterator[Any]:
    """A child process, and how to ask it something; `start` has no answer."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "voicepipe.bench.media_server", kind,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1024 * 1024,
    )  # fmt: skip
    assert child.stdin and child.stdout
    to, answers = child.stdin, child.stdout

    async def ask(**what: Any) -> dict[str, Any]:
        to.write(json.dumps(what).encode() + b"\n")
        await to.drain()
        return {} if "start" in what else dict(json.loads(await answers.readline()))

    try:
        yield ask
    finally:
        to.close()
        try:
            await asyncio.wait_for(child.wait(), 10)
        except TimeoutError:
            child.kill()
            await child.wait()
