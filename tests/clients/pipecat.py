"""A call by a Pipecat pipeline with `OpenAIRealtimeLLMService`."""

import asyncio
import sys
from typing import Any

from pipecat.frames.frames import (
    BotStoppedSpeakingFrame,
    ErrorFrame,
    InputAudioRawFrame,
    InterruptionFrame,
    LLMRunFrame,
    LLMTextFrame,
    OutputAudioRawFrame,
    StartFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
)
from pipecat.observers.base_observer import BaseObserver, FramePushed
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.realtime.events import ConversationItem
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner

from tests.clients.caller import RATE, Caller, tell

PARAMS = TransportParams(audio_in_enabled=True, audio_out_enabled=True)


class Microphone(BaseInputTransport):
    def __init__(self, caller: Caller) -> None:
        super().__init__(PARAMS)
        self._caller = caller

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)
        self._speaking = self.create_task(self._speak())

    async def cleanup(self) -> None:
        await self.cancel_task(self._speaking)
        await super().cleanup()

    async def _speak(self) -> None:
        async for pcm in self._caller.microphone():
            await self.push_audio_frame(InputAudioRawFrame(audio=pcm, sample_rate=RATE, num_channels=1))


class Loudspeaker(BaseOutputTransport):
    """Takes as long as the sound lasts."""

    def __init__(self) -> None:
        super().__init__(PARAMS)

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        await asyncio.sleep(len(frame.audio) / 2 / RATE)
        return True


class Witness(BaseObserver):
    """Tells the caller what goes through the pipeline."""

    def __init__(self, caller: Caller) -> None:
        super().__init__()
        self._caller = caller
        self._words = ""

    async def on_push_frame(self, data: FramePushed) -> None:
        if not data.first_push:
            return
        match data.frame, data.direction:
            case TranscriptionFrame() as frame, _:
                self._caller.heard(frame.text)
            case LLMTextFrame() as frame, _:
                self._words += frame.text
            case TTSAudioRawFrame() as frame, _:
                self._caller.sound(frame.audio)
            case BotStoppedSpeakingFrame(), FrameDirection.DOWNSTREAM:
                self._caller.said(self._words)
                self._words = ""
            case InterruptionFrame(), FrameDirection.DOWNSTREAM:
                tell("interrupted")
            case ErrorFrame() as frame, _:
                tell("error", text=frame.error)


async def main(url: str, first: str, second: str) -> None:
    """Hold the call."""
    caller = Caller(first, second)

    async def transfer_call(params: FunctionCallParams, to: str) -> None:
        """Puts the caller through.

        Args:
            to: Whom the caller wants to speak to.
        """
        await params.result_callback(caller.transfer(to))

    context = LLMContext(tools=[transfer_call])
    history = LLMContextAggregatorPair(context)
    llm = OpenAIRealtimeLLMService(api_key="none", base_url=f"{url.replace('http', 'ws')}/v1/realtime")
    items: list[str] = []

    @llm.event_handler("on_conversation_item_created")
    async def created(llm: OpenAIRealtimeLLMService, item_id: str, item: Any) -> None:
        items.append(item_id)

    pipeline = Pipeline([Microphone(caller), history.user(), llm, Loudspeaker(), history.assistant()])
    worker = PipelineWorker(
        pipeline, params=PipelineParams(audio_in_sample_rate=RATE), observers=[Witness(caller)], enable_rtvi=False
    )
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    running = asyncio.create_task(runner.run())
    await worker.queue_frames([LLMRunFrame()])
    try:
        await caller.satisfied()
        kept = [await llm.retrieve_conversation_item(item) for item in items]
        tell("history", items=[words(item) for item in kept if item.type == "message"])
    finally:
        await worker.cancel()
        await running


def words(item: ConversationItem) -> str:
    """What was said in one item of the conversation."""
    return " ".join(part.transcript or part.text or "" for part in item.content or [])


asyncio.run(main(*sys.argv[1:]))
