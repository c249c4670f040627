"""A caller on the OpenAI Realtime GA WebSocket: 24 kHz PCM in both directions, and no session.update."""

import asyncio
import time
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from socket import SO_LINGER, SOL_SOCKET
from ssl import SSLContext, create_default_context
from struct import pack
from typing import Protocol, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, WebSocketException

from latency_probes.failed_call import refused, unreachable
from latency_probes.mouth import Mouth, Talker
from latency_probes.sound import bed
from latency_probes.timeline import BLOCK, CREATED, Event, Timeline
from voicepipe.audio import Pcm
from voicepipe.base.errors import ProbeError

DIAL_S = 10.0
AUDIO = "response.output_audio.delta"
T = TypeVar("T")


class Head(msgspec.Struct):
    """The fields of a server event by which it is sorted."""

    type: str
    item_id: str = ""
    response_id: str = ""
    delta: str = ""


class Directory(Protocol):
    """As `via.Via`."""

    async def call(self, line: Timeline, enter: Callable[[str, str], Awaitable[T]]) -> T: ...


class RealtimeCaller(Talker[str]):
    """See `Caller`. `noise` and `seed` choose the room's noise; `agent` is sent as `model`.

    `tls`: whom to trust behind wss and https addresses; None: whom this machine trusts. `via`: a directory that says
    where to call, instead of `url` and `key`.
    """

    def __init__(
        self,
        url: str,
        noise: str,
        seed: int,
        key: str = "",
        agent: str = "",
        tls: SSLContext | None = None,
        via: Directory | None = None,
    ) -> None:
        timeline = Timeline()
        super().__init__(timeline, Mouth(timeline, noise, seed, frame_of, idle_frames(noise, seed)))
        self._url, self._key, self._agent = url, key, agent
        self._tls = tls
        self._via = via
        self._socket: ClientConnection | None = None

    async def dial(self) -> None:
        """See `Caller.dial`."""
        self.timeline.began = time.monotonic()
        socket = await (self._via.call(self.timeline, self._enter) if self._via else self._enter(self._url, self._key))
        self._socket = socket
        self._tasks = [asyncio.create_task(self._send(socket)), asyncio.create_task(self._receive(socket))]

    async def _enter(self, url: str, key: str) -> ClientConnection:
        url = endpoint(url, self._agent)
        try:
            # No compression: audio in base64 gains little and costs the generator its punctuality.
            return await connect(
                url,
                ssl=(self._tls or trusted()) if url.startswith("wss:") else None,
                additional_headers={"Authorization": f"Bearer {key}"} if key else {},
                compression=None,
                max_size=None,
                proxy=None,
                open_timeout=DIAL_S,
            )
        except InvalidStatus as error:
            raise refused(url, error.response.status_code, error.response.body) from error
        except InvalidURI as error:
            raise ProbeError(f"{url} is not a WebSocket address: give ws://host:port/v1/realtime") from error
        except (OSError, TimeoutError, WebSocketException) as error:
            raise unreachable(url, error) from error

    async def _disconnect(self) -> None:
        if self._socket:
            await self._socket.close()

    async def _cut(self) -> None:
        if self._socket:
            reset(self._socket)

    async def _send(self, socket: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            await self._mouth.speak(socket.send)

    async def _receive(self, socket: ClientConnection) -> None:
        heads = msgspec.json.Decoder(Head)
        try:
            async for message in socket:
                arrived = time.monotonic()
                head = heads.decode(message)
                if head.type == AUDIO:
                    pcm = np.frombuffer(b64decode(head.delta), "<i2")
                    self.timeline.add_audio(head.item_id, head.response_id, pcm, arrived)
                else:
                    self.timeline.add_event(Event(head.type, arrived, msgspec.json.decode(message)))
                if head.type == CREATED:
                    self.timeline.note_setup(CREATED)
        except ConnectionClosed:
            return
        except (msgspec.MsgspecError, ValueError) as error:
            raise ProbeError(f"the server sent a message that is no Realtime event: {error}") from error


def endpoint(url: str, agent: str) -> str:
    """The WebSocket address behind `url`: ws(s):// as it is, http(s)://host:port with the path added."""
    parts = urlsplit(url if "://" in url else f"ws://{url}")
    if parts.scheme not in ("ws", "wss", "http", "https") or not parts.netloc:
        raise ProbeError(f"{url} is no address of a server: give ws://host:port/v1/realtime or http://host:port")
    scheme = parts.scheme.replace("http", "ws")
    path = parts.path if parts.path.strip("/") else "/v1/realtime"
    query = "&".join(filter(None, [parts.query, f"model={quote(agent)}" if agent else ""]))
    return f"{scheme}://{parts.netloc}{path}" + (f"?{query}" if query else "")


def origin(url: str) -> str:
    """ "http(s)://HOST:PORT" of an address in any form that the probes take."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    return f"{'https' if parts.scheme in ('https', 'wss') else 'http'}://{parts.netloc}"


@lru_cache(1)
def trusted() -> SSLContext:
    """Whom this machine trusts. Reading their certificates takes tens of milliseconds, so it is done once."""
    return create_default_context()


def tls_of(url: str) -> SSLContext | None:
    """For a WebSocket at this address; None: it is not encrypted."""
    return trusted() if url.startswith("wss:") else None


def trust(ca: str) -> None:
    """Trust the authorities in this file (PEM), too. Raises ProbeError."""
    try:
        trusted().load_verify_locations(cafile=ca)
    except OSError as error:  # ssl.SSLError is one
        raise ProbeError(f"--ca {ca} has no certificate ({error}): give the authority's own, in PEM") from None


def reset(socket: ClientConnection) -> None:
    """End the TCP connection with a reset, at once."""
    raw = socket.transport.get_extra_info("socket")
    with suppress(OSError):
        raw.setsockopt(SOL_SOCKET, SO_LINGER, pack("ii", 1, 0))
    socket.transport.abort()


def frame_of(pcm: Pcm) -> str:
    """One block as the message that carries it."""
    return '{"type":"input_audio_buffer.append","audio":"' + b64encode(pcm.astype("<i2").tobytes()).decode() + '"}'


@lru_cache(32)
def idle_frames(noise: str, seed: int) -> tuple[str, ...]:
    """The room's noise alone, ready to be sent: most of a call is silence, so it is encoded once for all calls."""
    return tuple(frame_of(part) for part in bed(noise, seed).reshape(-1, BLOCK))
