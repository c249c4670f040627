"""A call by `RealtimeSession` of openai-agents."""

import asyncio
import sys
from typing import Any

from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner, RealtimeSession

from tests.clients.caller import Caller, tell


async def main(url: str, first: str, second: str) -> None:
    """Hold the call."""
    caller = Caller(first, second)
    agent = RealtimeAgent(
        name="front-desk",
        instructions="You answer the telephone of a restaurant.",
        tools=[function_tool(caller.transfer, name_override="transfer_call", description_override="Puts through.")],
    )
    model = {"url": f"{url.replace('http', 'ws')}/v1/realtime?model=front-desk", "api_key": "none"}
    async with await RealtimeRunner(agent).run(model_config=model) as session, asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(listen(session, caller)), tasks.create_task(speak(session, caller))]
        await caller.satisfied()
        for task in running:
            task.cancel()


async def speak(session: RealtimeSession, caller: Caller) -> None:
    async for pcm in caller.microphone():
        await session.send_audio(pcm)


async def listen(session: RealtimeSession, caller: Caller) -> None:
    async for event in session:
        match event.type:
            case "audio":
                caller.sound(event.audio.data)
            case "audio_interrupted":
                tell("interrupted")
            case "error":
                tell("error", text=str(event.error))
            case "history_updated":
                tell("history", items=[words(item) for item in event.history if item.type == "message"])
            case "raw_model_event":
                raw(event.data, caller)


def raw(event: Any, caller: Caller) -> None:
    match event.type:
        case "input_audio_transcription_completed":
            caller.heard(event.transcript)
        case "raw_server_event":
            tell("event", type=event.data["type"])
            if event.data["type"] == "response.done":
                parts = [part for item in event.data["response"]["output"] for part in item.get("content", [])]
                caller.said(" ".join(part["transcript"] for part in parts))


def words(item: Any) -> str:
    """What was said in one item of the conversation."""
    return " ".join(part.transcript or "" for part in item.content)


asyncio.run(main(*sys.argv[1:]))
