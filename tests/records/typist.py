"""A client that types to a PoP by WebSocket, and waits for each answer."""

import json
import ssl
import time
from urllib.parse import quote

import websockets


class Typist:
    """One call, from `async with` on; `told` are the texts whose answers were over, with their monotonic second.
    `model`: the agent."""

    def __init__(self, url: str, key: str = "none", model: str = "", **headers: str) -> None:
        self.tls: ssl.SSLContext | None = None
        """Whom to trust behind https; None: whom this machine trusts."""
        self._url = f"ws{url.removeprefix('http')}/v1/realtime" + (f"?model={quote(model)}" if model else "")
        self._headers = {"Authorization": f"Bearer {key}", **headers}
        self._socket: websockets.ClientConnection
        self.told: dict[str, float] = {}

    async def __aenter__(self) -> "Typist":
        self._socket = await websockets.connect(
            self._url, additional_headers=self._headers, max_queue=None, ssl=self.tls
        )
        await self._answered()  # the greeting
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._socket.close()

    async def asks(self, text: str) -> None:
        """Raises OSError, websockets.WebSocketException: the PoP is gone."""
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        await self._socket.send(json.dumps({"type": "conversation.item.create", "item": said}))
        await self._socket.send(json.dumps({"type": "response.create"}))
        await self._answered()
        self.told[text] = time.monotonic()

    async def _answered(self) -> None:
        async for message in self._socket:
            if json.loads(message)["type"] == "response.done":
                return
        raise OSError("the PoP is gone")
