"""A call by LiveKit's `AgentSession` with the OpenAI plugin's `RealtimeModel`."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from livekit import rtc
from livekit.agents import Agent, AgentSession, function_tool
from livekit.agents.voice.io import AudioInput, AudioOutput, AudioOutputCapabilities
from livekit.plugins.openai.realtime import RealtimeModel

from tests.clients.caller import RATE, Caller, tell


class Microphone(AudioInput):
    def __init__(self, caller: Caller) -> None:
        super().__init__(label="microphone")
        self._blocks: AsyncIterator[bytes] = caller.microphone()

    async def __anext__(self) -> rtc.AudioFrame:
        pcm = await anext(self._blocks)
        return rtc.AudioFrame(pcm, RATE, 1, len(pcm) // 2)


class Loudspeaker(AudioOutput):
    """Plays nothing, but takes as long as the sound lasts."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(label="loudspeaker", capabilities=AudioOutputCapabilities(pause=False), sample_rate=RATE)
        self._caller = caller
        self._started = 0.0
        self._length = 0.0
        self._end: asyncio.TimerHandle | None = None

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if not self._length:
            self._started = time.monotonic()
            self.on_playback_started(created_at=time.time())
        self._length += frame.duration
        self._caller.sound(bytes(frame.data))

    def flush(self) -> None:
        super().flush()
        if self._length:
            left = self._started + self._length - time.monotonic()
            self._end = asyncio.get_running_loop().call_later(left, self._over)

    def clear_buffer(self) -> None:
        if self._length:
            self._over(interrupted=True)

    def _over(self, interrupted: bool = False) -> None:
        if self._end:
            self._end.cancel()
        played = min(self._length, time.monotonic() - self._started)
        self._length = 0.0
        self.on_playback_finished(playback_position=played, interrupted=interrupted)


async def main(url: str, first: str, second: str) -> None:
    """Hold the call."""
    caller = Caller(first, second)

    @function_tool
    async def transfer_call(to: str) -> str:
        """Puts the caller through."""
        return caller.transfer(to)

    model = RealtimeModel(base_url=f"{url}/v1", api_key="none", model="front-desk")
    session = AgentSession(
        llm=model, vad=None, turn_handling={"turn_detection": "realtime_llm"}, aec_warmup_duration=None
    )
    session.input.audio = Microphone(caller)
    session.output.audio = Loudspeaker(caller)

    @session.on("user_input_transcribed")
    def transcribed(event: Any) -> None:
        if event.is_final:
            caller.heard(event.transcript)

    @session.on("conversation_item_added")
    def added(event: Any) -> None:
        if getattr(event.item, "role", "") == "assistant":
            if event.item.interrupted:
                tell("interrupted")
            caller.said(event.item.text_content)

    @session.on("error")
    def failed(event: Any) -> None:
        tell("error", text=str(event.error))

    agent = Agent(instructions="You answer the telephone of a restaurant.", tools=[transfer_call])
    await session.start(agent)
    agent.realtime_llm_session.on("openai_server_event_received", lambda event: tell("event", type=event["type"]))
    try:
        await caller.satisfied()
        tell("history", items=[item.text_content for item in session.history.items if item.type == "message"])
    finally:
        await session.aclose()
        await model.aclose()


asyncio.run(main(*sys.argv[1:]))
