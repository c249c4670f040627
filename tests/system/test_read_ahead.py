"""A call in real time whose tool is a real webhook that only reads and takes 400 ms."""

import asyncio

import pytest

from tests.support.scenario import play
from tests.support.tools import ASKED, scenario, used
from voicepipe.agent import Tool
from voicepipe.conversation.events import ReplyDone
from voicepipe.conversation.prompt import ToolCall
from voicepipe.tools.tool_runner import ToolRunner

pytestmark = pytest.mark.slow


async def test_a_webhook_is_asked_before_the_turn_is_over_and_once() -> None:
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.4)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfree")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, ToolRunner() as runner:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        tool = {"name": "book", "webhook": {"url": url}, "reads_only": True}

        async def use(tool: Tool, call: ToolCall) -> str:
            return await used(runner, tool, call.arguments)

        replies = {ASKED: "call:book {}", "free": "It is free."}
        recording = await play(scenario(agent={"tools": [tool]}, replies=replies, length_ms=6000), use)
    [use_of_it] = next(event for _, event in recording.events if isinstance(event, ReplyDone)).tools
    assert (use_of_it.early, use_of_it.result, asked) == (True, "free", 1)
    assert any("It is free." in line for line in recording.story)
