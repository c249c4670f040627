"""A Realtime server with scripted delays: it hears by level alone and always says the same.

Its clock is the caller's sound: it sends a block for every block that it hears, so what it does in a call is the
same on a machine that stalls; only the moments at which things arrive are not.
"""

import asyncio
import json
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import numpy as np
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from latency_probes.timeline import AUDIBLE_DBFS, BLOCK, WIRE_RATE
from voicepipe.audio import Pcm, dbfs

AHEAD_BLOCKS = 10
"""A reply is sent 200 ms ahead of real time, as servers do that let the network have its jitter."""
EVERYTHING = (
    "You are welcome, hello and good day: we are open Tuesday to Sunday from noon to ten, lunch is $18.50, dinner $42, "
    "at 12 Harbour Street with parking behind the house; for which day is the table? A colleague helps. Goodbye."
)


def tone(seconds: float) -> Pcm:
    """Something that sounds, at about -20 dBFS."""
    at = np.arange(int(seconds * WIRE_RATE)) / WIRE_RATE
    return np.asarray(4500 * np.sin(2 * np.pi * 300 * at), np.int16)


@dataclass
class Script:
    """How the server behaves. Times in milliseconds."""

    endpoint_ms: float = 160
    delay_ms: float = 40
    greeting: bool = True
    silence_first_ms: float = 0
    reply_s: float = 1.0
    heard: str = "what are your opening hours"
    says: str = EVERYTHING
    answers: bool = True
    duck_after_ms: float | None = None
    cut_after_ms: float | None = None
    refuses: HTTPStatus | None = None
    record: dict[str, Any] = field(default_factory=dict)
    gaps_ms: list[float] = field(default_factory=list)
    """By the server's own clock, of each turn: from the block with the last voice to the first sound that it sends."""


class Conversation:
    """One call."""

    def __init__(self, socket: ServerConnection, script: Script) -> None:
        self.socket = socket
        self.script = script
        self.number = 0
        self.voice_ms = self.silent_ms = 0.0
        self.spoken = False
        self.voice_at = 0.0
        self.replying: asyncio.Task[None] | None = None
        self.gain = 1.0
        self.response = ""
        self.due = asyncio.Semaphore(0)

    async def run(self) -> None:
        await self.event("session.created", session={"id": "sess_1"})
        if self.script.greeting:
            self.reply("Good day", 0.4, 0)
        async for message in self.socket:
            await self.hear(dbfs(np.frombuffer(b64decode(json.loads(message)["audio"]), np.int16)) > AUDIBLE_DBFS)

    async def hear(self, voice: bool) -> None:
        """One block of 20 ms."""
        self.due.release()
        self.silent_ms = 0.0 if voice else self.silent_ms + 20
        self.voice_ms = self.voice_ms + 20 if voice else 0.0 if self.silent_ms > 100 else self.voice_ms
        speaking = self.replying is not None and not self.replying.done()
        if speaking:
            await self.interrupted()
            return
        self.spoken = self.spoken or voice
        if voice:
            self.voice_at = time.monotonic()
        if self.spoken and self.silent_ms >= self.script.endpoint_ms:
            self.spoken, self.voice_ms = False, 0.0
            await self.event(
                "conversation.item.input_audio_transcription.completed", item_id="u", transcript=self.script.heard
            )
            if self.script.answers:
                self.reply(self.script.says, self.script.reply_s, self.script.delay_ms)

    async def interrupted(self) -> None:
        script, voice = self.script, self.voice_ms
        self.gain = 0.15 if script.duck_after_ms is not None and voice >= script.duck_after_ms else 1.0
        if script.cut_after_ms is not None and voice >= script.cut_after_ms and self.replying:
            self.replying.cancel()
            await self.event("input_audio_buffer.speech_started", item_id="u", audio_start_ms=0)
            await self.event("response.done", response={"id": self.response, "status": "cancelled"})
            self.spoken = True

    def reply(self, text: str, seconds: float, delay_ms: float) -> None:
        self.number += 1
        self.response = f"r{self.number}"
        silence = np.zeros(int(self.script.silence_first_ms * WIRE_RATE / 1000), np.int16)
        pcm = np.concatenate([silence, tone(seconds)])
        self.replying = asyncio.create_task(self.speak(text, pcm, delay_ms))

    async def speak(self, text: str, pcm: Pcm, delay_ms: float) -> None:
        await asyncio.sleep(delay_ms / 1000)
        if self.voice_at:
            self.script.gaps_ms.append(1000 * (time.monotonic() - self.voice_at))
        names = {"response_id": self.response, "item_id": f"a{self.number}", "output_index": 0, "content_index": 0}
        await self.event("response.created", response={"id": self.response})
        await self.event("response.output_audio_transcript.delta", delta=text, **names)
        self.due = asyncio.Semaphore(AHEAD_BLOCKS)
        for at in range(0, pcm.size, BLOCK):
            await self.due.acquire()
            block = (pcm[at : at + BLOCK] * self.gain).astype(np.int16)
            await self.event("response.output_audio.delta", delta=b64encode(block.tobytes()).decode(), **names)
        await self.event("response.output_audio_transcript.done", transcript=text, **names)
        metadata = {"voicepipe.turn": json.dumps(self.script.record)} if self.script.record else None
        await self.event("response.done", response={"id": self.response, "status": "completed", "metadata": metadata})

    async def event(self, type: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": type, "event_id": "e", **fields}))


@asynccontextmanager
async def fake_server(script: Script) -> AsyncIterator[str]:
    """The address of a server that follows `script`; it also answers GET /healthz."""
    calls = 0

    async def answer(socket: ServerConnection) -> None:
        nonlocal calls
        calls += 1
        await Conversation(socket, script).run()

    def before(connection: ServerConnection, request: Request) -> Response | None:
        if request.path == "/healthz":
            figures = {"tasks": 5, "threads": 2, "fds": 9, "rss_kb": 1000 + 3 * calls, "loop_lag_p99_ms": 1.5}
            return connection.respond(HTTPStatus.OK, json.dumps(figures))
        return connection.respond(script.refuses, "") if script.refuses else None

    async with serve(answer, "127.0.0.1", 0, process_request=before, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/v1/realtime"
