"""The probes' caller at the door of the bot (bot.py): what it hears is kept as what voicepipe's callers hear."""

import asyncio
import time
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from latency_probes.failed_call import unreachable
from latency_probes.mouth import Mouth, Talker
from latency_probes.realtime import DIAL_S, reset
from latency_probes.sound import bed
from latency_probes.timeline import BLOCK, WIRE_RATE, Event, Timeline
from voicepipe.audio import RATE, Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.base.errors import ProbeError


class BotCaller(Talker[bytes]):
    """See `latency_probes.caller.Caller`. It hears replies one after the other: one ends where RTVI says that the bot
    has stopped speaking, or where it is interrupted, and what is heard after that is the next one."""

    def __init__(self, url: str, noise: str, seed: int) -> None:
        timeline, narrow = Timeline(), Resampler(WIRE_RATE, RATE, in_step=True)
        mouth = Mouth(timeline, noise, seed, lambda pcm: wire(narrow(pcm)), idle_blocks(noise, seed))
        super().__init__(timeline, mouth)
        self._url = f"{url.replace('http', 'ws', 1)}/ws"
        self._socket: ClientConnection | None = None
        self._replies = 0
        self._speaking = False

    async def dial(self) -> None:
        """See `Caller.dial`."""
        self.timeline.began = time.monotonic()
        try:
            socket = await connect(self._url, compression=None, max_size=None, proxy=None, open_timeout=DIAL_S)
        except (OSError, TimeoutError, WebSocketException) as error:
            raise unreachable(self._url, error) from error
        self._socket = socket
        self._tasks = [asyncio.create_task(self._send(socket)), asyncio.create_task(self._receive(socket))]

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
        try:
            async for message in socket:
                arrived = time.monotonic()
                if isinstance(message, bytes):
                    self._heard(np.frombuffer(message, "<i2"), arrived)
                else:
                    self._told(msgspec.json.decode(message, type=dict[str, Any]), arrived)
        except ConnectionClosed:
            return
        except (msgspec.MsgspecError, ValueError, LookupError) as error:
            raise ProbeError(f"the bot sent a message that is none of RTVI: {error}") from error

    def _heard(self, pcm: Pcm, arrived: float) -> None:
        if not self._speaking:
            self._replies += 1
            self._speaking = True
            self._note("response.created", arrived, response={"id": self._reply})
        self.timeline.add_audio(self._reply, self._reply, pcm, arrived)

    def _told(self, message: dict[str, Any], arrived: float) -> None:
        match message["type"]:
            case "interruption":
                self._note("input_audio_buffer.speech_started", arrived)
                self._over(arrived)
            case "bot-stopped-speaking":
                self._over(arrived)
            case "user-transcription" if message["data"]["final"]:
                words = message["data"]["text"]
                self._note("conversation.item.input_audio_transcription.completed", arrived, transcript=words)

    def _over(self, arrived: float) -> None:
        if self._speaking:
            self._speaking = False
            self._note("response.done", arrived, response={"id": self._reply})

    @property
    def _reply(self) -> str:
        return f"reply-{self._replies}"

    def _note(self, type: str, arrived: float, **data: Any) -> None:
        """As the Realtime convention has it, which is what the probes judge."""
        self.timeline.add_event(Event(type, arrived, data))


def wire(pcm: Pcm) -> bytes:
    """int16[n] at 16 kHz as it travels."""
    return pcm.astype("<i2").tobytes()


@lru_cache(32)
def idle_blocks(noise: str, seed: int) -> tuple[bytes, ...]:
    """The room's noise alone: made once for all calls, a block of 24 kHz each."""
    sound = Resampler(WIRE_RATE, RATE, in_step=True)(bed(noise, seed))
    size = BLOCK * RATE // WIRE_RATE
    return tuple(wire(sound[at : at + size]) for at in range(0, sound.size, size))
