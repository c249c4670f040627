"""What one call's media cost, both ways: a WebRTC call's, beside stock aiortc in the same run, and a phone call's.

Calls are placed from this process to a child, whose processor time counts: Opus or G.711 both ways, SRTP, RTP, the
jitter buffer, playout and its pacing; no engine. What this process sends was encoded beforehand, and what it gets is
not decoded.
"""

import asyncio
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from rich.table import Table

from latency_probes.components.media_server import HOST, spoken
from voicepipe.base.figures import for_tables, keep
from voicepipe.rtp import sdes, sdp, sip_sdp
from voicepipe.rtp.clock import MediaClock
from voicepipe.rtp.codec import OPUS, PCMU, Codec
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.rtp_sender import PacketWire
from voicepipe.rtp.transport import Transport, UdpNetwork
from voicepipe.rtp.udp import UdpMedia

WARM_UP_S = 3.0
"""Nothing is counted before calls have been up for so long."""
KINDS = {"voicepipe": "voicepipe, Opus", "aiortc": "aiortc, Opus", "phone": "voicepipe, G.711"}
"""Far ends, and what a row of the table calls them."""


class Cost(msgspec.Struct):
    """What the far end's process took. Packets are of 20 ms; a call has 50 a second each way."""

    cpu_s: float
    wall_s: float
    lag_p99_ms: float
    heard: int
    sent: int


class Ratio(msgspec.Struct):
    """What voicepipe's far end takes, aiortc's being 1: of each run, since a machine may be slow for one of them."""

    median: float
    least: float
    most: float


async def run(calls: int, seconds: float, runs: int, json_file: Path | None) -> int:
    """Measure and print all, so many times. Raises ProbeError: `json_file` cannot be written."""
    console = for_tables()
    costs = list[dict[str, Cost]]()
    for number in range(1, runs + 1):
        what = f"media of {calls} calls, with SRTP, both ways, {seconds:.0f} s each"
        table = Table(title=f"{what}: run {number} of {runs}")
        table.add_column("engine")
        for column in ("% of a core, a call", "loop lag p99 ms", "heard/s", "sent/s"):
            table.add_column(column, justify="right", no_wrap=True)
        its = dict[str, Cost]()
        for kind, name in KINDS.items():
            with console.status(f"{calls} calls to {name} ..."):
                cost = its[kind] = await measured(kind, calls, seconds)
            each = calls * cost.wall_s
            table.add_row(name, f"{100 * cost.cpu_s / each:.2f}", f"{cost.lag_p99_ms:.1f}",
                          f"{cost.heard / each:.1f}", f"{cost.sent / each:.1f}")  # fmt: skip
        console.print(table)
        costs.append(its)
    ratio = of_aiortc(costs)
    console.print(f"By Opus voicepipe takes {ratio.median:.2f} of what aiortc takes in the same run (median of {runs}; "
                  f"{ratio.least:.2f} to {ratio.most:.2f}).")  # fmt: skip
    keep(json_file, {"calls": calls, "of_aiortc": ratio, "runs": costs})
    return 0


def of_aiortc(costs: Sequence[Mapping[str, Cost]]) -> Ratio:
    """By the cost of `KINDS` in each run."""
    shares = [its["voicepipe"].cpu_s / its["voicepipe"].wall_s * its["aiortc"].wall_s / its["aiortc"].cpu_s
              for its in costs]  # fmt: skip
    return Ratio(median(shares), min(shares), max(shares))


async def measured(kind: str, calls: int, seconds: float) -> Cost:
    """The cost of `calls` calls at a time with the far end `kind`."""
    clock, make = MediaClock(), PhoneCaller if kind == "phone" else WebRtcCaller
    payloads = await encoded(make.codec)
    callers = [make(payloads) for _ in range(calls)]
    ticking = asyncio.create_task(clock.run())
    try:
        async with far_end(kind) as ask:
            for caller in callers:
                await caller.dial(ask)
                clock.add(caller.tick)
            await asyncio.sleep(WARM_UP_S)
            await ask(start=1)
            await asyncio.sleep(seconds)
            return msgspec.convert(await ask(stop=1), Cost)
    finally:
        ticking.cancel()
        for caller in callers:
            await caller.close()


async def encoded(codec: Codec) -> list[bytes]:
    """Payloads of `spoken`."""
    encode = codec.encoder()
    return [encode(block) for block in (await spoken(codec.out_rate)).reshape(-1, codec.out_rate // 50)]


class LoadCaller(ABC):
    """Sends the same speech over and over."""

    codec: Codec

    def __init__(self, payloads: list[bytes], wire: PacketWire) -> None:
        self._payloads = payloads
        self._wire = wire
        self._sent = 0
        self._type = 0

    @abstractmethod
    async def dial(self, ask: Any) -> None:
        """Raises ConnectionError, SdpError."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of the sockets."""

    def tick(self, now: float) -> None:
        """A packet more."""
        n, self._sent = self._sent, self._sent + 1
        payload, span = self._payloads[n % len(self._payloads)], self.codec.clock // 50
        self._wire.send_rtp(bytes(RtpPacket(self._type, n & 0xFFFF, n * span & 0xFFFFFFFF, 7, payload)))


class WebRtcCaller(LoadCaller):
    codec = OPUS

    def __init__(self, payloads: list[bytes]) -> None:
        self._transport = Transport(UdpNetwork((HOST,)), controlling=True)
        super().__init__(payloads, self._transport)

    async def dial(self, ask: Any) -> None:
        offer = sdp.offer(self._transport, await self._transport.gather(), (OPUS,))
        said = sdp.read((await ask(offer=offer))["answer"])
        self._type = said.payload_type
        await self._transport.connect(said.remote)

    async def close(self) -> None:
        await self._transport.close()


class PhoneCaller(LoadCaller):
    codec = PCMU

    def __init__(self, payloads: list[bytes]) -> None:
        self._media = UdpMedia(HOST)
        super().__init__(payloads, self._media)

    async def dial(self, ask: Any) -> None:
        ours = sdes.offered()
        offer = sip_sdp.offer(sip_sdp.LocalDescription(HOST, self._media.open()), (PCMU,), ours)
        said = sip_sdp.read((await ask(offer=offer))["answer"])
        self._type = said.payload_type
        self._media.agree(said, HOST, sdes.Srtp.answered(ours, said.crypto[0]))

    async def close(self) -> None:
        self._media.close()


@asynccontextmanager
async def far_end(kind: str) -> AsyncIterator[Any]:
    """A child process, and how to ask it something; `start` has no answer."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "latency_probes.components.media_server", kind,
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
