"""A caller on the OpenAI Realtime GA WebSocket: 24 kHz PCM in both directions, and no session.update."""

import asyncio
import time
from base64 import b64decode, b64encode
from collections import deque
from functools import lru_cache
from urllib.parse import quote, urlsplit

import msgspec
import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, WebSocketException

from latency_probes.sound import BED_BLOCKS, ECHO_GAIN, bed, mixed
from latency_probes.timeline import BLOCK, Event, Timeline
from voicepipe.audio import BLOCK_MS, Pcm
from voicepipe.errors import ProbeError

DIAL_S = 10.0
AUDIO = "response.output_audio.delta"


class Head(msgspec.Struct):
    """The fields of a server event by which it is sorted."""

    type: str
    item_id: str = ""
    response_id: str = ""
    delta: str = ""


class RealtimeCaller:
    """See `Caller`. `noise` and `seed` choose the room's noise; `agent` is sent as `model`."""

    def __init__(self, url: str, noise: str, seed: int, key: str = "", agent: str = "") -> None:
        self.timeline = Timeline()
        self._url = endpoint(url, agent)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._noise = bed(noise, seed)
        self._idle = idle_frames(noise, seed)
        self._speech: deque[Pcm] = deque()
        self._frames: deque[str] = deque()
        self._taken = 0
        self._started = 0.0
        self._echo_ms: float | None = None
        self._lag = 0.0
        self._socket: ClientConnection | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def dial(self) -> None:
        """See `Caller.dial`."""
        try:
            # No compression: audio in base64 gains little and costs the generator its punctuality.
            self._socket = await connect(
                self._url,
                additional_headers=self._headers,
                compression=None,
                max_size=None,
                proxy=None,
                open_timeout=DIAL_S,
            )
        except InvalidStatus as error:
            raise ProbeError(refusal(self._url, error.response.status_code)) from error
        except InvalidURI as error:
            raise ProbeError(f"{self._url} is not a WebSocket address: give ws://host:port/v1/realtime") from error
        except (OSError, TimeoutError, WebSocketException) as error:
            raise ProbeError(
                f"no server answers at {self._url} ({error}): start one, or correct the address"
            ) from error
        self._tasks = [asyncio.create_task(self._send(self._socket)), asyncio.create_task(self._receive(self._socket))]

    def say(self, pcm: Pcm) -> int:
        """See `Caller.say`."""
        block = self._taken + len(self._frames)
        # Mixed and encoded here, once, so that sending a block is nothing but sending.
        whole = np.pad(pcm, (0, -pcm.size % BLOCK))
        loud = mixed(whole, self._noise, block % BED_BLOCKS * BLOCK)
        self._frames.extend(frame_of(part) for part in loud.reshape(-1, BLOCK))
        return block * BLOCK

    def echo(self, delay_ms: float | None) -> None:
        """See `Caller.echo`."""
        self._echo_ms = delay_ms

    def worst_lag(self) -> float:
        """See `Caller.worst_lag`."""
        return self._lag

    def hung_up(self) -> bool:
        """See `Caller.hung_up`."""
        return not self._tasks or any(task.done() for task in self._tasks)

    async def hang_up(self) -> None:
        """See `Caller.hang_up`."""
        for task in self._tasks:
            task.cancel()
        ends = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        if self._socket:
            await self._socket.close()
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _send(self, socket: ClientConnection) -> None:
        start = self._started = time.monotonic()
        sent = self.timeline.sent
        while True:
            due = start + len(sent) * BLOCK_MS / 1000
            await asyncio.sleep(due - time.monotonic())
            self._lag = max(self._lag, time.monotonic() - due)
            try:
                await socket.send(self._next())
            except ConnectionClosed:
                return
            sent.append(time.monotonic())

    def _next(self) -> str:
        block = self._taken
        self._taken += 1
        if self._frames:
            return self._frames.popleft()
        if self._echo_ms is None:
            return self._idle[block % BED_BLOCKS]
        # By the clock of the samples: rooms delay all blocks by the same, however late this loop wakes.
        second = self._started + block * BLOCK_MS / 1000 - self._echo_ms / 1000
        heard = self.timeline.played(second, BLOCK)
        return frame_of(mixed((heard * ECHO_GAIN).astype(np.int16), self._noise, block % BED_BLOCKS * BLOCK))

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


def refusal(url: str, status: int) -> str:
    """One sentence on a refused handshake."""
    reasons = {
        401: "it wants a key, or another one: give it by --key",
        403: "this key may not call: give another by --key",
        404: "it knows no such path or agent: check the address and --agent",
        429: "it is full: try again with fewer calls at a time",
        503: "it is full or draining: try again with fewer calls at a time",
    }
    return f"the server at {url} refused the call (HTTP {status}): {reasons.get(status, 'see its log')}"


def frame_of(pcm: Pcm) -> str:
    """One block as the message that carries it."""
    return '{"type":"input_audio_buffer.append","audio":"' + b64encode(pcm.astype("<i2").tobytes()).decode() + '"}'


@lru_cache(32)
def idle_frames(noise: str, seed: int) -> tuple[str, ...]:
    """The room's noise alone, ready to be sent: most of a call is silence, so it is encoded once for all calls."""
    return tuple(frame_of(part) for part in bed(noise, seed).reshape(-1, BLOCK))
