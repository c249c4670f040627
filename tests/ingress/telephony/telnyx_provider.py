"""Telnyx as the far end: signs its webhooks, keeps the commands that it gets, opens the stream that was asked for."""

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from websockets.asyncio.client import ClientConnection, connect

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.fake_predecessor import FakePredecessor
from voicepipe.config import Config, HttpConfig
from voicepipe.config.phone_config import RouteConfig, TelephonyConfig, TelnyxConfig

ENV = "TEST_TELNYX_KEY"
SECRET = "KEY0123"
SIGNER = Ed25519PrivateKey.from_private_bytes(b"signs webhooks for Telnyx, here.")
PUBLIC = b64encode(SIGNER.public_key().public_bytes_raw()).decode()
CALL = "v3:abc-DEF_1"
APPLICATION = "2345"
FROM: Any = {"from": "+1555"}


DONE = {"data": {"result": "ok"}}
"""What the API says of a command."""


async def said(writer: asyncio.StreamWriter, status: int, answer: dict[str, Any]) -> None:
    """The API answers."""
    data = json.dumps(answer).encode()
    writer.write(f"HTTP/1.1 {status} -\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data)
    await writer.drain()
    writer.close()


def webhook(event: str, payload: dict[str, Any], age: float = 0) -> tuple[bytes, dict[str, str]]:
    """What a webhook says, and the headers that sign it, `age` seconds ago."""
    body = json.dumps({"data": {"event_type": event, "record_type": "event", "payload": payload}}).encode()
    stamp = str(int(time.time() - age))
    signature = b64encode(SIGNER.sign(f"{stamp}|".encode() + body)).decode()
    return body, {"telnyx-signature-ed25519": signature, "telnyx-timestamp": stamp}


def start(call_id: str, asked: dict[str, Any], format: dict[str, Any] | None = None) -> str:
    """The first message of the stream that `asked`, a command, has begun, after "connected"."""
    custom = {one["name"]: one["value"] for one in asked.get("custom_parameters", [])}
    return json.dumps({"event": "start", "sequence_number": "1", "stream_id": "S1", "start": {
        "user_id": "U", "call_control_id": call_id, "from": "+1555", "to": "+4930123", "client_state": None,
        "custom_parameters": custom,
        "media_format": format or {"encoding": "PCMU", "sample_rate": 8000, "channels": 1},
    }})  # fmt: skip


class Api:
    """Telnyx's: keeps every command, and answers 200 unless `status` says otherwise for an action."""

    def __init__(self) -> None:
        self.url = ""
        self.hung_up: list[str] = []
        self.commands: list[tuple[str, dict[str, Any]]] = []
        self.status: dict[str, tuple[int, dict[str, Any]]] = {}
        self.active: list[dict[str, Any]] = []
        """Calls of the application, two a page."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        if head.startswith("get "):
            return await said(writer, *self.status.get("active_calls", (200, self._page(head.split(" ")[1]))))
        size = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        body = json.loads(await reader.readexactly(size))
        assert f"authorization: bearer {SECRET}".lower() in head
        version, calls, call_id, actions, action = head.split(" ")[1].strip("/").split("/")
        assert (version, calls, actions) == ("v2", "calls", "actions")
        assert call_id in {CALL.lower(), *(one["call_control_id"] for one in self.active)}
        self.commands.append((action, body))
        self.hung_up += [call_id] if action == "hangup" else []
        await said(writer, *self.status.get(action, (200, DONE)))

    def _page(self, path: str) -> dict[str, Any]:
        assert path.startswith(f"/v2/connections/{APPLICATION}/active_calls")
        first = int(path.partition("=")[2] or 0)
        after = str(first + 2) if first + 2 < len(self.active) else None
        return {"data": self.active[first : first + 2], "meta": {"total_items": 9, "cursors": {"after": after}}}

    def did(self, action: str) -> list[dict[str, Any]]:
        return [body for done, body in self.commands if done == action]

    def carried_out(self, action: str) -> list[dict[str, Any]]:
        """Telnyx does only the first of those that bear the same id."""
        found = self.did(action)
        return list({body.get("command_id", at): body for at, body in reversed(list(enumerate(found)))}.values())


@asynccontextmanager
async def telnyx(
    *routes: RouteConfig, codec: str = "PCMU", port: int = 0, active: Sequence[dict[str, Any]] = (),
    replaces: bool = False, **more: Any,
) -> AsyncIterator[tuple[FakePop, Api, str]]:  # fmt: skip
    """A PoP that Telnyx calls, and Telnyx. `replaces`: the PoP's process has taken over from another one; `more`: of
    its section of the configuration."""
    api = Api()
    api.active += active
    listening = await asyncio.start_server(api.serve, "127.0.0.1", 0)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(ENV, SECRET)
        async with listening:
            url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            config = Config(
                telephony=TelephonyConfig(public_url="https://voice.example.com/x"),
                telnyx=TelnyxConfig(public_key=PUBLIC, api_key_env=ENV, api_url=url, codec=codec, **more),  # type: ignore[arg-type]
                routes=routes,
            )
            pop = FakePop(config)
            pop.config = msgspec.structs.replace(pop.config, http=HttpConfig(port=port))
            async with serving(pop, FakePredecessor() if replaces else None) as address:
                yield pop, api, address


async def post(address: str, event: str, *, age: float = 0, query: str = "", **payload: Any) -> int:
    """A webhook; its status."""
    body, headers = webhook(event, {"call_control_id": CALL} | payload, age)
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"http://{address}/telnyx/voice{query}", content=body, headers=headers)
    return answer.status_code


async def call(address: str, **more: Any) -> None:
    """Somebody calls, and Telnyx has answered as it was told."""
    assert await post(address, "call.initiated", direction="incoming", to="+4930123", **FROM, **more) == 200
    assert await post(address, "call.answered", to="+4930123", **FROM) == 200


@asynccontextmanager
async def streaming(
    address: str, api: Api, format: dict[str, Any] | None = None, call_id: str = CALL
) -> AsyncIterator[ClientConnection]:
    """The stream that was asked for."""
    [asked] = api.did("streaming_start")
    headers = {"x-telnyx-streaming-auth-token": asked["stream_auth_token"]}
    async with connect(f"ws://{address}/telnyx/stream", additional_headers=headers, proxy=None) as socket:
        await socket.send('{"event":"connected","version":"1.0.0"}')
        await socket.send(start(call_id, asked, format))
        yield socket
