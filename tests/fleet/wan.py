"""A wide-area network in user space: `python -m tests.fleet.wan`.

Each host is a network namespace whose only way out is a TUN device. This process reads what they send each other, keeps
it for as long as it would travel, and hands it on, in order. It loses some, and everything between a region that is
cut off and the others. The first line of the standard input is a `Wan`, each further one says "cut REGION" or "heal
REGION".
"""

import asyncio
import os
import random
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import msgspec
import uvloop

BATCH = 64
"""Packets read at a time from one host."""
DESTINATION = slice(16, 20)
"""Of an IPv4 packet's header."""


class End(msgspec.Struct, frozen=True):
    """A host's device."""

    address: str
    region: str
    """Empty: nothing is far from it, and nothing cuts it off. It is whoever measures."""
    device: int
    """Descriptor."""


class Wan(msgspec.Struct, frozen=True):
    """What lies between the ends."""

    ends: list[End]
    round_trips_ms: dict[str, float]
    """Of two regions, as "eu us" in the order of the alphabet; within one, as "eu eu"."""
    jitter_ms: float = 1.0
    loss: float = 0.0
    """Of packets between regions."""


class Router:
    """`write` hands a packet to a device; `later` has something done after so many seconds."""

    def __init__(
        self,
        wan: Wan,
        write: Callable[[int, bytes], None],
        later: Callable[[float, Callable[[], None]], object],
        lots: random.Random,
    ) -> None:
        self._wan = wan
        self._ends = {_packed(end.address): end for end in wan.ends}
        self._write, self._later, self._lots = write, later, lots
        self._ways: dict[tuple[int, int], deque[bytes]] = {}
        """What is on its way from one device to another, the first to arrive first: none overtakes another, however a
        loop rounds its times."""
        self._cut: set[str] = set()

    def cut(self, region: str) -> None:
        """What is under way is lost as well."""
        self._cut.add(region)

    def heal(self, region: str) -> None:
        self._cut.discard(region)

    def take(self, one: End, packet: bytes) -> None:
        """A host has sent this."""
        other = self._ends.get(packet[DESTINATION])
        if packet[0] >> 4 != 4 or other is None or self._is_cut(one, other):
            return
        if not (one.region and other.region):
            self._write(other.device, packet)
            return
        first, second = sorted((one.region, other.region))
        if first != second and self._lots.random() < self._wan.loss:
            return
        delay_ms = self._wan.round_trips_ms[f"{first} {second}"] / 2 + self._lots.uniform(0, self._wan.jitter_ms)
        way = self._ways.setdefault((one.device, other.device), deque())
        way.append(packet)

        def arrives() -> None:
            first = way.popleft()
            if not self._is_cut(one, other):
                self._write(other.device, first)

        self._later(delay_ms / 1000, arrives)

    def _is_cut(self, one: End, other: End) -> bool:
        return bool(one.region and other.region) and (one.region in self._cut) != (other.region in self._cut)


def _packed(address: str) -> bytes:
    return bytes(map(int, address.split(".")))


def _written(device: int, packet: bytes) -> None:
    with suppress(OSError):  # Its queue is full: it is lost, as it would be elsewhere.
        os.write(device, packet)


async def main() -> None:
    stdin = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    wan = msgspec.json.decode(await stdin.readline(), type=Wan)
    router = Router(wan, _written, loop.call_later, random.Random(0))

    def readable(end: End) -> None:
        with suppress(BlockingIOError):
            for _ in range(BATCH):
                router.take(end, os.read(end.device, 65536))

    for end in wan.ends:
        loop.add_reader(end.device, readable, end)
    print("wan: ready", flush=True)
    while line := (await stdin.readline()).decode().split():
        (router.cut if line[0] == "cut" else router.heal)(line[1])
        print(*line, flush=True)


if __name__ == "__main__":
    uvloop.run(main())
