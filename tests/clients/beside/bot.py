"""A bot as Pipecat's documents have one write it, with voicepipe's recogniser and voice: one pipeline a call, and what
ends a turn as shipped (Silero's VAD, Smart Turn).

`python -m tests.clients.beside.bot WHISPER` takes calls at ws://127.0.0.1:PORT/ws, after it has said where. WHISPER is
the folder of the weights. Binary messages are sound, s16le: 16 kHz in, 24 kHz out, Pipecat's own rates, so nothing is
resampled. Texts are RTVI's messages, and `INTERRUPTION`.
"""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncGenerator
from functools import lru_cache
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI, WebSocket
from faster_whisper import WhisperModel
from hibari import SAMPLE_RATE, Hibari
from loguru import logger
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.frames.frames import (
    Frame,
    InputAudioRawFrame,
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMRunFrame,
    LLMTextFrame,
    OutputAudioRawFrame,
    OutputTransportMessageFrame,
    OutputTransportMessageUrgentFrame,
    TTSAudioRawFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair, LLMUserAggregatorParams
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.serializers.base_serializer import FrameSerializer
from pipecat.services.settings import TTSSettings
from pipecat.services.tts_service import TTSService
from pipecat.services.whisper.stt import WhisperSTTService
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport
from pipecat.workers.runner import WorkerRunner

HEARD_RATE = 16_000
GREETING = "Hello, how can I help you?"
ANSWER = "We are open from Tuesday to Sunday."
INTERRUPTION = '{"type": "interruption"}'
"""What was sent and is not played yet is to be thrown away."""
AUDIBLE = 10 ** (-45 / 20)
"""RMS of 10 ms that a caller can hear."""


class Wire(FrameSerializer):
    """Frames as they travel."""

    async def serialize(self, frame: Frame) -> str | bytes | None:
        match frame:
            case OutputAudioRawFrame():
                return bytes(frame.audio)
            case InterruptionFrame():
                return INTERRUPTION
            case OutputTransportMessageFrame() | OutputTransportMessageUrgentFrame():
                return json.dumps(frame.message)
        return None

    async def deserialize(self, data: str | bytes) -> Frame | None:
        return InputAudioRawFrame(audio=data, sample_rate=HEARD_RATE, num_channels=1)


@lru_cache(1)
def whisper(folder: str) -> WhisperModel:
    """int8 on the CPU, on as many threads as it takes by itself. Warm: it has read a second of silence."""
    model = WhisperModel(folder, device="cpu", compute_type="int8")
    list(model.transcribe(np.zeros(HEARD_RATE, np.float32), language="en")[0])
    return model


@lru_cache(1)
def voice() -> Hibari:
    """Warm: it has spoken."""
    made = Hibari()
    made(GREETING)
    return made


def spoken(text: str) -> bytes:
    """s16le at 24 kHz, without the silence before it, as voicepipe has it."""
    sound = voice()(text)
    frame = SAMPLE_RATE // 100
    levels = np.sqrt(np.mean(sound[: sound.size // frame * frame].reshape(-1, frame) ** 2, axis=1))
    sound = sound[int(np.argmax(levels > AUDIBLE)) * frame :]
    return bytes((np.clip(sound, -1, 1) * 32767).astype("<i2"))


class Ears(WhisperSTTService):
    """As shipped, but for all calls one model that is loaded and warm, in place of one for each call."""

    def _load(self) -> None:
        self._model = whisper(self._settings.model)


class Canned(FrameProcessor):
    """In place of a language model: a greeting, then one answer to everything, at once."""

    def __init__(self) -> None:
        super().__init__()
        self._says = GREETING

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if not isinstance(frame, LLMContextFrame):
            await self.push_frame(frame, direction)
            return
        for part in (LLMFullResponseStartFrame(), LLMTextFrame(self._says), LLMFullResponseEndFrame()):
            await self.push_frame(part)
        self._says = ANSWER


class Mouth(TTSService):
    """hibari, as Pipecat's own services have voices that speak in this process."""

    def __init__(self) -> None:
        settings = TTSSettings(model=None, voice=None, language=None)
        super().__init__(push_start_frame=True, push_stop_frames=True, settings=settings)

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        sound = await asyncio.to_thread(spoken, text)
        yield TTSAudioRawFrame(sound, SAMPLE_RATE, 1, context_id=context_id)


async def answer(caller: WebSocket, model: str) -> None:
    """One call."""
    params = FastAPIWebsocketParams(audio_in_enabled=True, audio_out_enabled=True, serializer=Wire())
    transport = FastAPIWebsocketTransport(websocket=caller, params=params)
    ears = Ears(device="cpu", compute_type="int8", settings=Ears.Settings(model=model))
    context = LLMContext()
    user, assistant = LLMContextAggregatorPair(
        context, user_params=LLMUserAggregatorParams(vad_analyzer=SileroVADAnalyzer())
    )
    worker = PipelineWorker(Pipeline([transport.input(), ears, user, Canned(), Mouth(), transport.output(), assistant]))

    @transport.event_handler("on_client_connected")
    async def connected(transport: Any, client: Any) -> None:
        context.add_message({"role": "developer", "content": "Please introduce yourself to the user."})
        await worker.queue_frames([LLMRunFrame()])

    @transport.event_handler("on_client_disconnected")
    async def disconnected(transport: Any, client: Any) -> None:
        await worker.cancel()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()


def main(model: str) -> None:
    """Until it is told to end."""
    logger.remove()
    logger.add(sys.stderr, level="WARNING")
    app = FastAPI()

    @app.websocket("/ws")
    async def call(caller: WebSocket) -> None:
        await caller.accept()
        await answer(caller, model)

    whisper(model)
    voice()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(f"bot answers at http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
