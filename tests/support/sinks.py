"""Where packets and sound go to in tests: it is kept."""

from collections.abc import Callable
from dataclasses import dataclass, field

from voicepipe.audio import Block, Pcm
from voicepipe.rtp.rtp_sender import PacketSink


@dataclass(slots=True)
class Packets:
    """A `PacketSink`."""

    data: list[bytes] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)

    def datagram(self, data: bytes, arrived: float) -> None:
        self.data.append(data)
        self.arrived.append(arrived)


class NoSrtp:
    """An `SrtpReader` that reads nothing."""

    def srtp(self, data: bytes, arrived: float) -> None: ...


class NoWire:
    """A `PacketWire` that leads nowhere."""

    def deliver_to(self, sink: PacketSink) -> None: ...

    def send_rtp(self, packet: bytes) -> None: ...

    def send_rtcp(self, packet: bytes) -> None: ...


@dataclass(slots=True)
class Media:
    """A `MediaListener`."""

    heard: list[tuple[Pcm, float, bool]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def sound(self, pcm: Pcm, arrived: float, filled: bool) -> None:
        self.heard.append((pcm, arrived, filled))

    def key(self, key: str) -> None:
        self.keys.append(key)


@dataclass(slots=True)
class Blocks:
    """A `SoundListener`; `hears` is called with each block instead of keeping it."""

    hears: Callable[[Block], None] | None = None
    kept: list[Block] = field(default_factory=list)

    def hear(self, block: Block) -> None:
        (self.hears or self.kept.append)(block)
