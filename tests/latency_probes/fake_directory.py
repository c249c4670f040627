"""A directory that says what a test has written down, and keeps what it was asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class FakeDirectory:
    """The n-th question gets the n-th answer: candidates as (PoP, URL), or an HTTP status and a sentence."""

    answers: Sequence[list[tuple[str, str]] | tuple[int, str]]
    degraded: bool = False
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, question: bytes) -> tuple[int, Any]:
        said = self.answers[len(self.asked)]
        self.asked.append(json.loads(question))
        if isinstance(said, tuple):
            return said[0], {"error": {"message": said[1]}}
        candidates = [{"pop": pop, "url": url, "token": f"vp_{pop}", "turn_ms_est": 210.5} for pop, url in said]
        return 200, {"call_id": "c", "expires_in": 60, "degraded": self.degraded, "candidates": candidates}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        assert head.startswith("post /v1/calls ")
        self.keys.append(fields.get("authorization", ""))
        status, said = self.answer(await reader.readexactly(int(fields["content-length"])))
        body = json.dumps(said).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def fake_directory(
    *answers: list[tuple[str, str]] | tuple[int, str], degraded: bool = False
) -> AsyncIterator[FakeDirectory]:
    """One that answers, at `url`."""
    directory = FakeDirectory(answers, degraded)
    async with await asyncio.start_server(directory.serve, "127.0.0.1", 0) as server:
        directory.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield directory
