"""What jitter and loss do to a call's sound, by the real media engine in virtual time."""

import random
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
from rich.table import Table

from voicepipe.audio import BLOCK_MS, Pcm, opus
from voicepipe.base.figures import for_tables, keep
from voicepipe.rtp.codec import OPUS
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.rtp_sender import PacketSink
from voicepipe.rtp.rtp_session import RtpSession

TYPE, FRAME_S = 111, BLOCK_MS / 1000
TRANSIT_S = 0.030
"""Of the fastest packet; not an added delay."""
BAD_S, GOOD_S = 30.0, 15.0
"""So long the network is as the row says, and then so long without a fault."""
CAPTION = """p50, p95, most: added delay while the network is as named (aim: 25 without jitter, 120 with 60 ms and 5 %)
healed: most, one second after it is well again (aim: 40 after ten); hole: the longest piece made up"""


@dataclass(slots=True)
class HeardSound:
    """What the call got. Delays in ms: from a packet's sending to its hand-over, less the fastest packet's transit."""

    delays: list[tuple[float, float]] = field(default_factory=list)
    """(second at which it was sent, delay)."""
    holes: list[float] = field(default_factory=list)
    """Lengths in ms of what was made up, one after the other as long as nothing real came between."""
    sent_at: dict[float, float] = field(default_factory=dict)
    """Of packets, by when they arrive."""
    now: float = 0.0
    _in_hole: bool = False

    def sound(self, pcm: Pcm, arrived: float, filled: bool) -> None:
        """As `MediaListener.sound`."""
        if not filled:
            sent, self._in_hole = self.sent_at[arrived], False
            self.delays.append((sent, 1000 * (self.now - sent - TRANSIT_S)))
            return
        ms = pcm.size / 16
        if self._in_hole:
            self.holes[-1] += ms
        else:
            self.holes.append(ms)
        self._in_hole = True

    def key(self, key: str) -> None:
        """As `MediaListener.key`."""


class Added(msgspec.Struct):
    """A network's part, in ms."""

    p50: float
    p95: float
    most: float
    healed: float
    """Most, one second after the network is well again."""
    hole: float
    """The longest piece that was made up."""
    made_up: float
    """Share of the sound."""


class _Nobody:
    def deliver_to(self, sink: PacketSink) -> None: ...

    def send_rtp(self, packet: bytes) -> None: ...

    def send_rtcp(self, packet: bytes) -> None: ...


def simulate(jitter_s: float, loss: float, seed: int = 1) -> HeardSound:
    """A caller who speaks through such a network, which heals after `BAD_S`."""
    rng, heard = random.Random(seed), HeardSound()
    encode = opus.OpusEncoder(OPUS.out_rate)
    tone = (6000 * np.sin(2 * np.pi * 200 * np.arange(480) / 24_000)).astype(np.int16)
    session = RtpSession(OPUS, TYPE, _Nobody(), heard, clock=lambda: heard.now)
    session.listened = True
    events: list[tuple[float, bytes]] = []
    for n in range(int((BAD_S + GOOD_S) / FRAME_S)):
        sent, packet = n * FRAME_S, bytes(RtpPacket(TYPE, n & 0xFFFF, n * 960, 7, encode(tone)))
        bad = sent < BAD_S
        if not (bad and rng.random() < loss):
            arrives = sent + TRANSIT_S + (rng.uniform(0, jitter_s) if bad else 0.0)
            heard.sent_at[arrives] = sent
            events.append((arrives, packet))
        events.append((sent + 0.013, b""))  # the clock's tick, in a phase of its own
    for heard.now, packet in sorted(events):
        if packet:
            session.datagram(packet, heard.now)
        session.tick(heard.now)
    return heard


def run(json_file: Path | None) -> int:
    """Print a row for each kind of network. Raises ProbeError: `json_file` cannot be written."""
    console = for_tables()
    table = Table(title="what a network adds to the delay of a caller's sound, in ms", caption=CAPTION)
    table.add_column("network", no_wrap=True)
    for column in ("p50", "p95", "most", "healed", "hole", "made up"):
        table.add_column(column, justify="right", no_wrap=True)
    figures = {}
    for name, jitter_s, loss in (
        ("well", 0.0, 0.0),
        ("1 % lost", 0.0, 0.01),
        ("20 ms jitter", 0.020, 0.0),
        ("60 ms jitter, 5 % lost", 0.060, 0.05),
        ("100 ms jitter, 10 % lost", 0.100, 0.10),
    ):
        heard = simulate(jitter_s, loss)
        bad = sorted(delay for sent, delay in heard.delays if sent < BAD_S)
        figures[name] = found = Added(
            bad[len(bad) // 2], bad[int(0.95 * len(bad))], bad[-1],
            max(delay for sent, delay in heard.delays if sent >= BAD_S + 1), max(heard.holes, default=0.0),
            sum(heard.holes) / (1000 * (BAD_S + GOOD_S)),
        )  # fmt: skip
        *times, made_up = msgspec.structs.astuple(found)
        table.add_row(name, *(f"{ms:.0f}" for ms in times), f"{100 * made_up:.1f} %")
    console.print(table)
    keep(json_file, figures)
    return 0
