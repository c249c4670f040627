"""A web server of an agent's owner, for hooks: it answers as it is told, and keeps what it was asked."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

SLOW, BREAKS = "slow", "breaks"
"""It takes its time until the client is gone; it ends the connection without an answer."""


class HookServer:
    """Gives `answers` in turn, the last one again and again: an object as JSON, a text as it is, a number as an HTTP
    status, `SLOW` or `BREAKS`."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        """Bodies, read as JSON."""
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.url = ""
        self._clients: dict[asyncio.StreamWriter, asyncio.Task[Any] | None] = {}
        self._server: asyncio.Server | None = None
        self.left = 0
        """Clients who went away while they waited."""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}/hook"

    async def stop(self) -> None:
        """Nobody can connect any more, and who has is disconnected."""
        if self._server:
            self._server.close()
            self._server = None
        for client in list(self._clients):
            client.close()
        await asyncio.sleep(0)

    def has(self, task: asyncio.Task[Any]) -> bool:
        """Whether this task is one of its own."""
        return task in self._clients.values()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients[writer] = asyncio.current_task()
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(line for line in head.lower().splitlines() if line.startswith("content-length"))
                body = await reader.readexactly(int(length.partition(":")[2]))
                self.heads.append(head)
                self.bodies.append(body)
                self.asked.append(json.loads(body))
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if answer == SLOW:
                    await reader.read(1)
                    self.left += 1
                    return
                if answer == BREAKS:
                    return
                writer.write(_written(answer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            del self._clients[writer]
            writer.close()


def _written(answer: Any) -> bytes:
    status = answer if isinstance(answer, int) else 200
    text = "" if isinstance(answer, int) else answer if isinstance(answer, str) else json.dumps(answer)
    return f"HTTP/1.1 {status} Whatever\r\nContent-Length: {len(text.encode())}\r\n\r\n{text}".encode()


@asynccontextmanager
async def hook_server(*answers: Any) -> AsyncIterator[HookServer]:
    """Yields the server, at `url` on loopback."""
    hooks = HookServer(*answers)
    await hooks.start()
    try:
        yield hooks
    finally:
        await hooks.stop()
