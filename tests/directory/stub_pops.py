"""What a directory takes for PoPs, and that answer as a test wants."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from random import Random
from typing import Any

import msgspec
from starlette.datastructures import Headers

from tests.directory.fleets import SIGNER, Served, served
from tests.directory.reports import FRANKFURT, LONDON, report
from voicepipe.base.errors import Reason, WhyNone
from voicepipe.config.phone_config import PhoneKind
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.directory import Directory, PlacedCall, WhyBounced

Answer = Callable[[str, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Gets the head of a request, and the connection behind it."""


class Stub:
    """One that listens."""

    def __init__(self, answer: Answer) -> None:
        self.heads: list[str] = []
        """Of the requests that came."""
        self.url = ""
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.heads.append(head)
            await self._answer(head, reader, writer)
        writer.close()


@asynccontextmanager
async def stub(answer: Answer) -> AsyncIterator[Stub]:
    """It listens on a free port."""
    made, tasks = Stub(answer), set[asyncio.Task[None]]()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(made.serve(reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def says(status: int, said: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """An HTTP answer."""
    lines = [f"HTTP/1.1 {status} So", f"Content-Length: {len(said)}", "Connection: close",
             *(f"{name}: {value}" for name, value in (headers or {}).items())]  # fmt: skip
    whole = "\r\n".join([*lines, "", said]).encode()

    async def answer(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(whole)
        await writer.drain()

    return answer


async def hangs_up(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A process that ends while it would answer."""


async def resets(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Alike, and what it has not read is lost."""
    writer.transport.abort()


async def is_silent(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A process that was stopped: its kernel takes the connection."""
    await asyncio.Event().wait()


def opens(then: Answer) -> Answer:
    """A WebSocket, of which `then` is all that happens."""

    async def answer(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = Headers(dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line))
        key = asked["sec-websocket-key"]
        accept = base64.b64encode(hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()).decode()
        protocol = "Sec-WebSocket-Protocol: realtime\r\n" if "sec-websocket-protocol" in asked else ""
        writer.write(f"HTTP/1.1 101 So\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{protocol}"
                     f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())  # fmt: skip
        await then(head, reader, writer)

    return answer


def text(said: bytes) -> bytes:
    """A message of less than 64 kB, as a WebSocket has it."""
    length = bytes([len(said)]) if len(said) < 126 else b"\x7e" + len(said).to_bytes(2, "big")
    return b"\x81" + length + said


async def greets(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A first message; then the next that comes is taken for goodbye."""
    writer.write(text(b"hello"))
    await reader.read(1)


async def vanishes(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A first message, and no more of anything."""
    writer.write(text(b"hello"))
    await asyncio.Event().wait()


takes_calls = opens(greets)


@asynccontextmanager
async def directory_of(*answers: Answer, **changes: Any) -> AsyncIterator[tuple[Served, list[Stub]]]:
    """A directory that believes two or more PoPs to be well, "a" the nearest of them; its clock stands still."""
    bus = MemoryBus()
    directory = Directory(bus, SIGNER, Random(0), clock=lambda: 1000.0)
    async with AsyncExitStack() as stack:
        stubs = [await stack.enter_async_context(stub(answer)) for answer in answers]
        for name, place, pop in zip("abcdefgh", (FRANKFURT, *[LONDON] * 7), stubs, strict=False):
            tell(directory, name, url=pop.url, place=place, **changes)
        yield await stack.enter_async_context(served(directory, bus)), stubs


class Bounced:
    """What a directory has heard of calls that were not taken where they were sent."""

    def __init__(self, directory: Directory) -> None:
        self.by: list[tuple[str, WhyBounced]] = []
        self.refusals: list[tuple[PhoneKind, Reason]] = []
        """Of phone calls, before a PoP was looked for."""
        directory.followers.append(self)

    def placed(self, call: PlacedCall) -> None:
        """No matter."""

    def not_placed(self, why: WhyNone) -> None:
        """No matter."""

    def bounced(self, pop: str, why: WhyBounced) -> None:
        self.by.append((pop, why))

    def refused(self, door: PhoneKind, reason: Reason) -> None:
        self.refusals.append((door, reason))


def tell(directory: Directory, pop: str, seq: int = 0, **changes: Any) -> None:
    """A PoP reports."""
    directory.take(BusMessage(f"vp.pop.{pop}.report", msgspec.json.encode(report(seq, **changes))))
