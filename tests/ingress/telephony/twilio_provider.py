"""Twilio as the far end: signs as it does, asks the webhook, streams a call, plays what it gets, sends marks back."""

import asyncio
import json
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from xml.etree import ElementTree

import httpx
from twilio.request_validator import RequestValidator
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from voicepipe.audio import Pcm, g711

TOKEN = "0123456789abcdef"
ENV = "TEST_TWILIO_TOKEN"
PACKET = 160


def signed(url: str, params: dict[str, str] | None = None, algorithm: str | None = None) -> dict[str, str]:
    """The headers by which Twilio signs."""
    headers = {"X-Twilio-Signature": RequestValidator(TOKEN).compute_signature(url, params or {}, algorithm)}
    if algorithm:
        headers["X-Twilio-Webhooks-Signature-Settings"] = f"key=webhooks_sharedkey_1,algorithm={algorithm}"
    return headers


async def post(url: str, params: dict[str, str], headers: dict[str, str] | None = None) -> httpx.Response:
    """A webhook."""
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.post(url, data=params, headers=signed(url, params) if headers is None else headers)


def verbs(answer: httpx.Response) -> ElementTree.Element:
    """TwiML that has been answered."""
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/xml")
    return ElementTree.fromstring(answer.text)


class Stream:
    """One media stream: everything that Twilio says is in its words. `heard` is what the caller has been played."""

    def __init__(self, socket: ClientConnection, call_sid: str, stream_sid: str = "MZ1") -> None:
        self.socket = socket
        self.call_sid = call_sid
        self.stream_sid = stream_sid
        self.said: list[dict[str, Any]] = []
        """What came from the server."""
        self.heard = bytearray()
        self.speaks = asyncio.Event()
        """Sound has come."""
        self.closed = asyncio.Event()
        self._sequence = 0
        self._chunk = 0
        self._play_end = 0.0
        self._marks: dict[str, asyncio.TimerHandle] = {}
        self._sounds: list[tuple[float, bytes]] = []

    async def send(self, event: str, **more: Any) -> None:
        self._sequence += 1
        message = {"event": event, "sequenceNumber": str(self._sequence), "streamSid": self.stream_sid, **more}
        await self.socket.send(json.dumps(message))

    async def start(self, parameters: dict[str, str]) -> None:
        await self.socket.send(json.dumps({"event": "connected", "protocol": "Call", "version": "1.0.0"}))
        await self.send("start", start={
            "accountSid": "AC1", "streamSid": self.stream_sid, "callSid": self.call_sid, "tracks": ["inbound"],
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
            "customParameters": parameters,
        })  # fmt: skip

    async def say(self, pcm: Pcm, pace: float = 0.0) -> None:
        """int16[n] at 8 kHz."""
        began = time.monotonic()
        for number, at in enumerate(range(0, pcm.size - PACKET + 1, PACKET)):
            if pace:
                await asyncio.sleep(began + number * pace - time.monotonic())
            self._chunk += 1
            payload = b64encode(g711.encode("pcmu", pcm[at : at + PACKET])).decode()
            await self.send("media", media={"track": "inbound", "chunk": str(self._chunk),
                                            "timestamp": str(20 * self._chunk), "payload": payload})  # fmt: skip

    async def listen(self) -> None:
        """Until the server closes."""
        loop = asyncio.get_running_loop()
        try:
            async for raw in self.socket:
                message = json.loads(raw)
                self.said.append(message)
                match message["event"]:
                    case "media":
                        self.speaks.set()
                        payload = b64decode(message["media"]["payload"])
                        begins = max(loop.time(), self._play_end)
                        self._sounds.append((begins, payload))
                        self._play_end = begins + len(payload) / 8000
                    case "mark":
                        name = message["mark"]["name"]
                        self._marks[name] = loop.call_at(self._play_end, self._mark, name)
                    case "clear":
                        self._sounds = [(begins, payload) for begins, payload in self._sounds if begins < loop.time()]
                        self._play_end = loop.time()
                        for name, timer in list(self._marks.items()):
                            timer.cancel()
                            self._mark(name)
        except ConnectionClosed:
            pass
        finally:
            self.closed.set()

    def _mark(self, name: str) -> None:
        if self._marks.pop(name, None):
            self._sending = asyncio.ensure_future(self._quietly(self.send("mark", mark={"name": name})))

    async def _quietly(self, sending: Any) -> None:
        try:
            await sending
        except ConnectionClosed:
            return

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.said if message["event"] == kind]

    @property
    def played(self) -> Pcm:
        """What the caller has been played by the end."""
        return g711.decode("pcmu", b"".join(payload for _, payload in self._sounds))


@asynccontextmanager
async def streaming(
    url: str, headers: dict[str, str] | None = None, call_sid: str = "CA1", host: str = ""
) -> AsyncIterator[Stream]:
    """A stream to `url`, signed unless `headers` are given."""
    more = signed(url) if headers is None else headers
    async with connect(url, additional_headers=more, compression=None, proxy=None) as socket:
        stream = Stream(socket, call_sid)
        listening = asyncio.create_task(stream.listen())
        try:
            yield stream
        finally:
            await socket.close()
            await listening
