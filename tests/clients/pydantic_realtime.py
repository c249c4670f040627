"""A call by a realtime session of Pydantic AI's agent."""

import asyncio
import sys
from collections.abc import AsyncIterator

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, PartEndEvent, SpeechPart
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime import RealtimeInputSpeechStartEvent, RealtimeSession, RealtimeSessionErrorEvent
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

from tests.clients.caller import RATE, Caller, tell


async def main(url: str, first: str, second: str) -> None:
    """Hold the call."""
    caller = Caller(first, second)
    agent = Agent(instructions="You answer the telephone of a restaurant.")

    @agent.tool_plain
    def transfer_call(to: str) -> str:
        """Puts the caller through."""
        return caller.transfer(to)

    model = OpenAIRealtimeModel("front-desk", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))
    async with (
        agent.realtime(model).session(handle_barge_in=True) as session,
        asyncio.TaskGroup() as tasks,
    ):
        running = [
            tasks.create_task(listen(session, caller)),
            tasks.create_task(play(session.stream_audio(), caller)),
            tasks.create_task(session.send_audio(caller.microphone())),
        ]
        await caller.satisfied()
        for task in running:
            task.cancel()
        tell("history", items=[text for message in session.all_messages() if (text := words(message))])


async def play(sound: AsyncIterator[bytes], caller: Caller) -> None:
    """Nothing, but for as long as the sound lasts."""
    async for pcm in sound:
        caller.sound(pcm)
        await asyncio.sleep(len(pcm) / 2 / RATE)


async def listen(session: RealtimeSession, caller: Caller) -> None:
    async for event in session:
        match event:
            case PartEndEvent(part=SpeechPart(speaker="user", transcript=text)):
                caller.heard(text or "")
            case PartEndEvent(part=SpeechPart(transcript=text)):
                caller.said(text or "")
            case RealtimeInputSpeechStartEvent():
                tell("interrupted")  # voicepipe sends this over an answer only once it cuts the answer
            case RealtimeSessionErrorEvent(message=text):
                tell("error", text=text)


def words(message: ModelMessage) -> str:
    """What was said in one message of the conversation."""
    return " ".join(part.transcript or "" for part in message.parts if isinstance(part, SpeechPart))


asyncio.run(main(*sys.argv[1:]))
