"""A caller who comes by Twilio: this plays Twilio, with a signed webhook and media stream of PCMU, marks and clear.

What is heard is ascribed to replies by a sideband of the call, which is found by Twilio's id of it.
"""

import asyncio
import hmac
import secrets
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import httpx
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from latency_probes.failed_call import refusal, unreachable
from latency_probes.mouth import Mouth, Talker
from latency_probes.realtime import DIAL_S, origin, reset, tls_of
from latency_probes.sideband import UNANNOUNCED, Ascriber, beside, listen
from latency_probes.sound import bed
from latency_probes.timeline import BLOCK, WIRE_RATE, Timeline
from voicepipe.audio import Pcm, g711
from voicepipe.audio.resample import Resampler
from voicepipe.base.environment import made_up
from voicepipe.base.errors import ProbeError

VOICE = "/twilio/voice"
NUMBERS = {"From": "+15550100", "To": "+15550199"}
TOKEN_ENV = "VOICEPIPE_PROBE_TWILIO_TOKEN"
STREAM_SID = "MZ" + 32 * "0"
PAYLOAD = g711.RATE // 50
FOUND_S = 2.0
"""A call can be found by its id soon after its stream has begun."""


@contextmanager
def door() -> Iterator[tuple[tuple[str, ...], str]]:
    """Options of a PoP that is called by Twilio, and the token by which it is signed for."""
    token = made_up(TOKEN_ENV)
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "twilio.toml"
        manifest.write_text(f'[twilio]\nauth_token_env = "{TOKEN_ENV}"\n')
        yield ("--pop", str(manifest)), token


def unsigned(address: str, status: int) -> str:
    """One sentence on a refused request, which is mostly about its signature."""
    if status != httpx.codes.FORBIDDEN:
        return refusal(address, status)
    return (
        f"the server at {address} refused the call (HTTP 403), for it expects another signature: give the account's "
        "auth token by --key, and call by the address that its telephony.public_url says; its log says more"
    )


class TwilioCaller(Talker[str]):
    """See `Caller`. `noise` and `seed` choose the room's noise; `agent` is asked for in the webhook's address.

    `key`: the account's auth token, by which Twilio signs; where the server has tenants, "TOKEN:KEY" with one's key.
    """

    def __init__(self, url: str, noise: str, seed: int, key: str = "", agent: str = "") -> None:
        timeline, narrow = Timeline(), Resampler(WIRE_RATE, g711.RATE, in_step=True)
        mouth = Mouth(timeline, noise, seed, lambda pcm: payload(narrow(pcm)), idle_payloads(noise, seed))
        super().__init__(timeline, mouth)
        self._origin, self._agent = origin(url), agent
        self._token, _, self._key = key.partition(":")
        self._call_sid = f"CA{secrets.token_hex(16)}"
        self._ascriber = Ascriber(timeline, UNANNOUNCED)
        self._widen = Resampler(g711.RATE, WIRE_RATE, in_step=True)
        self._sockets: list[ClientConnection] = []
        self._chunk = 0
        self._play_end = 0.0
        self._marks: dict[str, asyncio.TimerHandle] = {}
        self._echoes: set[asyncio.Task[None]] = set()

    async def dial(self) -> None:
        """See `Caller.dial`."""
        address, parameters = await self._ring()
        self.timeline.began = time.monotonic()
        socket = await self._connect(address)
        await socket.send('{"event":"connected","protocol":"Call","version":"1.0.0"}')
        await socket.send(self._start(parameters))
        self._tasks = [asyncio.create_task(self._receive(socket)), asyncio.create_task(self._send(socket))]
        events = await self._beside()
        self._tasks.append(asyncio.create_task(listen(events, self._ascriber)))

    async def _ring(self) -> tuple[str, dict[str, str]]:
        """The address of the stream that the server wants, and its parameters. Raises ProbeError."""
        address = self._origin + VOICE + (f"?agent={quote(self._agent)}" if self._agent else "")
        form = {"CallSid": self._call_sid, **NUMBERS}
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=DIAL_S) as client:
                answer = await client.post(address, data=form, headers=self._signed(address, form))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise unreachable(address, error) from error
        if answer.status_code != httpx.codes.OK:
            raise ProbeError(unsigned(address, answer.status_code))
        stream = ElementTree.fromstring(answer.text).find("Connect/Stream")
        if stream is None:
            raise ProbeError(f"the server at {address} does not take the call: it is full, or see its log")
        return stream.get("url", ""), {one.get("name", ""): one.get("value", "") for one in stream}

    def _signed(self, address: str, form: dict[str, str]) -> dict[str, str]:
        said = address + "".join(name + form[name] for name in sorted(form))
        return {"X-Twilio-Signature": b64encode(hmac.digest(self._token.encode(), said.encode(), "sha1")).decode()}

    async def _connect(self, address: str) -> ClientConnection:
        headers = self._signed(address, {})
        try:
            socket = await connect(
                address,
                ssl=tls_of(address),
                additional_headers=headers,
                compression=None,
                max_size=None,
                proxy=None,
                open_timeout=DIAL_S,
            )
        except InvalidStatus as error:
            raise ProbeError(unsigned(address, error.response.status_code)) from error
        except (OSError, TimeoutError, WebSocketException) as error:
            raise unreachable(address, error) from error
        self._sockets.append(socket)
        return socket

    async def _beside(self) -> ClientConnection:
        """The call's events. Raises ProbeError."""
        deadline = time.monotonic() + FOUND_S
        while True:
            try:
                socket = await beside(self._origin, self._call_sid, self._key)
            except ProbeError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.02)
            else:
                self._sockets.append(socket)
                return socket

    def _start(self, parameters: dict[str, str]) -> str:
        form = {"encoding": "audio/x-mulaw", "sampleRate": g711.RATE, "channels": 1}
        start = {
            "streamSid": STREAM_SID,
            "callSid": self._call_sid,
            "accountSid": "AC",
            "tracks": ["inbound"],
            "mediaFormat": form,
            "customParameters": parameters,
        }
        message = {"event": "start", "sequenceNumber": "1", "streamSid": STREAM_SID, "start": start}
        return msgspec.json.encode(message).decode()

    async def _disconnect(self) -> None:
        for timer in self._marks.values():
            timer.cancel()
        for socket in self._sockets:
            await socket.close()

    async def _cut(self) -> None:
        for timer in self._marks.values():
            timer.cancel()
        for socket in self._sockets:
            reset(socket)

    async def _send(self, socket: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            await self._mouth.speak(lambda said: socket.send(self._media(said)))

    def _media(self, said: str) -> str:
        self._chunk += 1
        return (
            f'{{"event":"media","sequenceNumber":"{self._chunk + 1}","streamSid":"{STREAM_SID}","media":{{'
            f'"track":"inbound","chunk":"{self._chunk}","timestamp":"{20 * self._chunk}","payload":"{said}"}}}}'
        )

    async def _receive(self, socket: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            async for raw in socket:
                arrived = time.monotonic()
                message = msgspec.json.decode(raw, type=dict[str, Any])
                match message.get("event"):
                    case "media":
                        sound = b64decode(message["media"]["payload"])
                        self._play_end = max(arrived, self._play_end) + len(sound) / g711.RATE
                        self.timeline.note_setup("first packet in")
                        self._ascriber.sound(self._widen(g711.decode("pcmu", sound)), arrived)
                    case "mark":
                        self._mark(socket, message["mark"]["name"])
                    case "clear":
                        self._clear(socket, arrived)

    def _mark(self, socket: ClientConnection, name: str) -> None:
        """It goes back once what came before it has been played."""
        loop = asyncio.get_running_loop()
        left = max(0.0, self._play_end - time.monotonic())
        self._marks[name] = loop.call_at(loop.time() + left, self._echo, socket, name)

    def _clear(self, socket: ClientConnection, now: float) -> None:
        """What is not played never will be; its marks go back."""
        self._play_end = min(self._play_end, now)
        self.timeline.play_end = min(self.timeline.play_end, now)
        for name, timer in list(self._marks.items()):
            timer.cancel()
            self._echo(socket, name)

    def _echo(self, socket: ClientConnection, name: str) -> None:
        del self._marks[name]
        echo = asyncio.ensure_future(
            self._say(socket, {"event": "mark", "streamSid": STREAM_SID, "mark": {"name": name}})
        )
        self._echoes.add(echo)
        echo.add_done_callback(self._echoes.discard)

    async def _say(self, socket: ClientConnection, message: dict[str, Any]) -> None:
        with suppress(ConnectionClosed):
            await socket.send(msgspec.json.encode(message).decode())


def payload(pcm: Pcm) -> str:
    """int16[160] at 8 kHz as it travels."""
    return b64encode(g711.encode("pcmu", pcm)).decode()


@lru_cache(32)
def idle_payloads(noise: str, seed: int) -> tuple[str, ...]:
    """The room's noise alone: encoded once for all calls, a block of 24 kHz each."""
    sound = bed(noise, seed)
    narrow = Resampler(WIRE_RATE, g711.RATE, in_step=True)(sound)
    assert narrow.size == sound.size // BLOCK * PAYLOAD
    return tuple(payload(narrow[at : at + PAYLOAD]) for at in range(0, narrow.size, PAYLOAD))
