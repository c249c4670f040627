"""What the attacks of key holders by WebSocket share: calls that send as fast as they are read, for a while."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import websockets

from tests.attacks.connections import again
from tests.attacks.target import Target

CLOSE_S = 1.0


class Client:
    """One call's far end. What the server says of errors is counted in `target.told`."""

    def __init__(self, socket: websockets.ClientConnection, target: Target, until: float) -> None:
        self._socket = socket
        self._target = target
        self.until = until

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.until

    async def send(self, kind: str, **fields: Any) -> None:
        """One event; waits while the server does not read, until the time is over."""
        await self.send_text(json.dumps({"type": kind, **fields}))

    async def send_text(self, message: str) -> None:
        """As `send`, of a message as it is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.01, self.until - time.monotonic())):
                await self._socket.send(message)
                await asyncio.sleep(0)  # What comes is read, too.

    async def listen(self) -> None:
        async for raw in self._socket:
            if b'"error"' in (raw.encode() if isinstance(raw, str) else raw)[:20]:
                self._target.told[json.loads(raw)["error"]["code"]] += 1


async def calling(target: Target, seconds: float, calls: int, behave: Callable[[Client], Awaitable[None]]) -> None:
    """`calls` at a time behave so, each placed anew when it is ended."""
    until = time.monotonic() + seconds
    await asyncio.gather(*(_one_after_another(target, until, behave) for _ in range(calls)))


async def _one_after_another(target: Target, until: float, behave: Callable[[Client], Awaitable[None]]) -> None:
    headers = {"Authorization": f"Bearer {target.key}"} if target.key else {}
    url = f"{target.ws}/v1/realtime"

    async def once() -> None:
        async with websockets.connect(
            url, additional_headers=headers, proxy=None, max_size=None, close_timeout=CLOSE_S
        ) as socket:
            client = Client(socket, target, until)
            listening = asyncio.create_task(client.listen())
            try:
                await behave(client)
            finally:
                listening.cancel()
                await asyncio.wait({listening})

    await again(target, until, once)


def message(text: str) -> dict[str, Any]:
    """A user's item."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
