"""A whole PoP whose language model, by a server of the OpenAI kind, calls two tools in one answer."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import websockets

from latency_probes.own_server import started
from tests.engines.openai_server import DONE, Event, Json, Server, called, chunk, said, serving
from tests.support.paths import ROOT

pytestmark = pytest.mark.e2e
CONFIG = """
[pop]
budget_ms = 600000
agents = "agents"
[engines]
vad = "scripted"
asr = "scripted"
llm = "openai"
tts = "scripted"
[openai]
base_url = "{url}"
"""
TOOL = """
[[tools]]
name = "{name}"
description = "Looks it up."
function = "tests.support.slow_tools:meet"
timeout_ms = 60000
[tools.parameters]
type = "object"
properties = {{ who = {{ type = "string" }} }}
"""
AGENT = 'name = "front-desk"\n' + TOOL.format(name="table") + TOOL.format(name="menu")


def model(body: Json) -> list[Event]:
    """Both tools, with the pieces of their arguments in turn; then what came of them."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return said("Both ", "are ", "there.")
    if last["content"] != "a table, and what is on the menu?":
        return said("Yes.")
    table, menu = called("call_t", "table", '{"who":', '"ann"}'), called("call_m", "menu", '{"who":', '"bob"}', index=1)
    return [*(piece for pair in zip(table, menu, strict=True) for piece in pair), chunk("tool_calls"), DONE]


async def answered(url: str) -> list[Json]:
    """Ask by keyboard; the events up to the end of the reply."""
    events: list[Json] = []
    async with websockets.connect(url.replace("http", "ws", 1) + "/v1/realtime", ping_interval=None) as socket:

        async def say(kind: str, **fields: Any) -> None:
            await socket.send(json.dumps({"type": kind, **fields}))

        words = [{"type": "input_text", "text": "a table, and what is on the menu?"}]
        await say("conversation.item.create", item={"type": "message", "role": "user", "content": words})
        await say("response.create", response={"output_modalities": ["text"]})
        async for raw in socket:
            events.append(json.loads(raw))
            if events[-1]["type"] == "response.done":
                return events
    raise ConnectionError("the call ended before the reply")


def talked_to(command: tuple[str, ...]) -> list[Json]:
    """As `answered`, of a PoP of its own. Blocks: the model's server runs beside it."""
    with started(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as pop:
        return asyncio.run(answered(pop.url))


async def test_two_tools_in_one_answer_run_at_once_and_the_reply_knows_both(tmp_path: Path) -> None:
    """Each of them returns only while the other runs."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "desk.toml").write_text(AGENT)
    server = Server(model)
    async with serving(server) as url:
        (tmp_path / "pop.toml").write_text(CONFIG.format(url=url))
        command = (sys.executable, "-m", "voicepipe", "pop", "--port", "0", "--config", str(tmp_path / "pop.toml"))
        events = await asyncio.to_thread(talked_to, command)
    assert events[-1]["response"]["status"] == "completed"
    assert [event["text"] for event in events if event["type"] == "response.output_text.done"] == ["Both are there."]
    table, found, menu, read = server.asked[-1]["messages"][-4:]
    assert [(one["tool_calls"][0]["id"], one["tool_calls"][0]["function"]["name"]) for one in (table, menu)] == [
        ("call_t", "table"), ("call_m", "menu")
    ]  # fmt: skip
    assert [(one["tool_call_id"], one["content"]) for one in (found, read)] == [
        ("call_t", "ann was there"), ("call_m", "bob was there")
    ]  # fmt: skip
