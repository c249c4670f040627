"""Callers that do what programs and networks do to a server in a year: they die, stall and flood.

None of them is judged. Each ends by itself, with all that it opened closed; a server that shuts one out is right.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from latency_probes import clips
from latency_probes.caller import Caller
from latency_probes.realtime import DIAL_S, endpoint, idle_frames, reset
from latency_probes.sip import dialled
from latency_probes.timeline import WIRE_RATE
from latency_probes.webrtc import place
from voicepipe.audio import g711, opus
from voicepipe.base.errors import ProbeError

DIES_S = (0.2, 8.0)
"""After its question has begun: in the middle of it, of the answer, or in the silence after it."""
STALLS_S = (10.0, 50.0)
"""Longer than what a server's keep-alive waits, now and then."""
FLOOD_S = 4.0
TIMES = 10
"""So many times as fast as a person."""
NONSENSE = (
    "{",
    '{"type":"no.such.event"}',
    '{"type":"response.cancel"}',
    '{"type":"input_audio_buffer.append","audio":"?"}',
    '{"type":"conversation.item.truncate","item_id":"none","content_index":0,"audio_end_ms":5}',
    '{"type":"response.create"}',
)


@dataclass(frozen=True, slots=True)
class Site:
    """Where the server is. `phone`: its telephone, as "HOST:PORT"; empty: it has none."""

    url: str
    phone: str = ""
    key: str = ""
    agent: str = ""


async def dies(caller: Caller, question: clips.Speech, rng: np.random.Generator) -> None:
    """By whatever door: gone without a word, by a reset where there is TCP."""
    try:
        await caller.dial()
        caller.say(question.pcm)
        await asyncio.sleep(rng.uniform(*DIES_S))
    finally:
        with suppress(ProbeError):
            await caller.drop()


async def stalls(site: Site, rng: np.random.Generator) -> None:
    """It goes on sending, and reads nothing, not even the server's pings."""
    async with _socket(site) as socket:
        socket.transport.pause_reading()
        await socket.send('{"type":"response.create"}')
        until = asyncio.get_running_loop().time() + rng.uniform(*STALLS_S)
        for frame in idle_frames("quiet", 1) * 10:
            if asyncio.get_running_loop().time() > until:
                break
            await socket.send(frame)
            await asyncio.sleep(0.02)
        reset(socket)


async def floods(site: Site, rng: np.random.Generator) -> None:
    """Sound ten times as fast as it is spoken, with nonsense in it; the answers are read."""
    async with _socket(site) as socket:
        reading = asyncio.ensure_future(_read(socket))
        try:
            await _often(lambda number: socket.send(_event(number, rng)))
        finally:
            reading.cancel()


async def pours(site: Site, rng: np.random.Generator) -> None:
    """Ten times as many packets as a call has, by telephone or by WebRTC."""
    silence = np.zeros(WIRE_RATE // 50, np.int16)
    if site.phone and rng.random() < 0.5:
        call = await dialled(site.url, site.phone, site.agent, lambda data, arrived: None)
        payload, send, hang_up = g711.encode("pcmu", silence[::3]), call.send, call.hang_up
    else:
        placed = await place(site.url, site.key, site.agent)
        payload, send, hang_up = opus.OpusEncoder(WIRE_RATE)(silence), placed.send, placed.hang_up

    async def one(number: int) -> None:
        send(payload)

    try:
        await _often(one)
    finally:
        await hang_up()


def _event(number: int, rng: np.random.Generator) -> str:
    frames = idle_frames("quiet", 1)
    return NONSENSE[int(rng.integers(len(NONSENSE)))] if number % 50 == 0 else frames[number % len(frames)]


async def _often(send: Callable[[int], Awaitable[None]]) -> None:
    for number in range(int(FLOOD_S * 50)):
        for turn in range(TIMES):
            await send(number * TIMES + turn)
        await asyncio.sleep(0.02)


def _socket(site: Site) -> connect:
    headers = {"Authorization": f"Bearer {site.key}"} if site.key else {}
    return connect(
        endpoint(site.url, site.agent), additional_headers=headers, compression=None, max_size=None, proxy=None,
        open_timeout=DIAL_S, close_timeout=1,
    )  # fmt: skip


async def _read(socket: object) -> None:
    with suppress(WebSocketException):
        async for _ in socket:  # type: ignore[attr-defined]
            pass


SHUT_OUT = (ProbeError, OSError, TimeoutError, WebSocketException)
"""What a caller gets whom the server refuses, or whose connection it ends."""
