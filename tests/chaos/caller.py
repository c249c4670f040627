"""One call by WebSocket: turns by keyboard or by voice, and what was heard in each."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import websockets
from websockets.asyncio.client import ClientConnection

from voicepipe.audio import Pcm

TURN_S = 12.0
"""So long a caller waits for a turn to be answered."""
QUIET_S = 1.0
"""A turn is over when its reply is done and nothing follows for so long."""


@dataclass(slots=True)
class Heard:
    """What a caller heard in one turn."""

    words: str = ""
    first_ms: float | None = None
    """From the end of what the caller said to the first sound; None: nothing was heard."""
    lost: bool = False
    """The call was gone."""

    @property
    def what(self) -> str:
        """In a word or two."""
        if self.lost:
            return "call lost"
        said = self.words.lower()
        rungs = [
            name for name, sign in (("ack", "one moment"), ("answer", "noon"), ("fallback", "problem")) if sign in said
        ]
        at = f" after {self.first_ms / 1000:.1f} s" if self.first_ms is not None else ""
        return ("+".join(rungs) or ("part of it" if said else "nothing")) + at

    @property
    def served(self) -> bool:
        return not self.lost and self.first_ms is not None


class Caller:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def types(self, during: Callable[[], None] | None = None) -> Heard:
        """Ask by keyboard; `during` is done when the reply's first words are there."""
        part = [{"type": "input_text", "text": "When are you open?"}]
        item = {"type": "message", "role": "user", "content": part}
        try:
            await self._say({"type": "conversation.item.create", "item": item})
            await self._say({"type": "response.create"})
        except websockets.ConnectionClosed:
            return Heard(lost=True)
        return await self._hear(time.monotonic(), during)

    async def speaks(self, pcm: Pcm, during: Callable[[], None] | None = None) -> Heard:
        """Ask by voice (int16 at 24 kHz), then send silence; `during` is done in the middle of the voice."""
        sending = asyncio.create_task(self._stream(pcm, during))
        try:
            return await self._hear(time.monotonic() + pcm.size / 24_000, None)
        finally:
            sending.cancel()

    async def _stream(self, pcm: Pcm, during: Callable[[], None] | None) -> None:
        began, block = time.monotonic(), 960
        silence = np.zeros(block, np.int16)
        for number in range(100_000):
            at = number * block
            if during and at > pcm.size // 2:
                change, during = during, None
                change()
            piece = pcm[at : at + block] if at + block <= pcm.size else silence
            audio = base64.b64encode(piece.tobytes()).decode()
            await self._say({"type": "input_audio_buffer.append", "audio": audio})
            await asyncio.sleep(max(0.0, began + (at + block) / 24_000 - time.monotonic()))

    async def _say(self, event: dict[str, Any]) -> None:
        await self._socket.send(json.dumps(event))

    async def _hear(self, ended: float, during: Callable[[], None] | None) -> Heard:
        heard, over = Heard(), False
        deadline = ended + TURN_S
        while (left := deadline - time.monotonic()) > 0:
            try:
                event = json.loads(await asyncio.wait_for(self._socket.recv(), min(left, QUIET_S) if over else left))
            except TimeoutError:
                break
            except websockets.ConnectionClosed:
                heard.lost = True
                break
            match event["type"]:
                case "response.output_audio_transcript.delta":
                    heard.words += event["delta"]
                    if during:
                        change, during = during, None
                        await asyncio.to_thread(change)
                case "response.output_audio.delta" if heard.first_ms is None:
                    heard.first_ms = max(0.0, (time.monotonic() - ended) * 1000)
                case "response.created":
                    over = False
                case "response.done":
                    over = True
        return heard


@asynccontextmanager
async def call(url: str) -> AsyncIterator[Caller | None]:
    """A call that is answered; None: it was refused."""
    address = url.replace("http", "ws", 1) + "/v1/realtime?model=front-desk"
    try:
        socket = await websockets.connect(address, open_timeout=10, ping_interval=None)
    except (websockets.InvalidStatus, OSError, TimeoutError):
        yield None
        return
    async with socket:
        yield Caller(socket)
