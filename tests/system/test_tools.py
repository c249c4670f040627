"""Whole PoPs whose agents have tools: one that takes 2 s, by WebSocket and by telephone, and two in one answer.

What callers say is scripted, so that a busy machine hears it, too. With the slow tool the answers, the voice and the
lines are real; the clip that is played is long enough for all words: one comes every 250 ms.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import websockets

from latency_probes import clips
from latency_probes.caller import Caller
from latency_probes.conversation import greeting_over
from latency_probes.own_server import Started, started
from latency_probes.realtime import RealtimeCaller
from latency_probes.sip import SipCaller
from latency_probes.timeline import Reply, voiced_span
from tests.engines.openai_server import DONE, Event, Json, Server, called, chunk, said, serving
from tests.support.paths import ROOT
from tests.support.ports import free_port
from tests.support.spoken import spoken
from tests.support.waiting import until

pytestmark = pytest.mark.e2e


# --- a slow tool

SLOW = """
[pop]
budget_ms = 600000
agents = "agents"
[engines]
asr = "scripted"
[scripted]
hears = ["a table for two at seven on friday", "that is all thanks"]
"""


@contextmanager
def slow_pop(folder: Path) -> Iterator[tuple[Started, str]]:
    """And its telephone's address. What was booked stands in the file `booked`."""
    (folder / "agents").mkdir()
    (folder / "slow.toml").write_text(SLOW)
    desk = (ROOT / "tests" / "models" / "desk" / "front-desk.toml").read_text()
    slow = desk.replace("voicepipe.tools.restaurant:book_table", "tests.support.slow_tools:book_table")
    assert slow != desk
    (folder / "agents" / "desk.toml").write_text(slow)
    port = free_port()
    command = (sys.executable, "-m", "voicepipe", "pop", "--port", "0", "--sip-port", str(port))
    variables = {"PYTHONPATH": str(ROOT), "BOOKINGS": str(folder / "booked")}
    with started((*command, "--config", str(folder / "slow.toml")), {**os.environ, **variables}) as child:
        yield child, f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def pop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Its address, and its telephone's."""
    with slow_pop(tmp_path_factory.mktemp("pop")) as (child, phone):
        yield child.url, phone


async def ask(caller: Caller, said: str) -> Reply:
    """Say something; the reply to it, once it is over."""
    speech = await asyncio.to_thread(clips.speech, spoken("booking")[0], 1)
    before = len(caller.timeline.of_type("response.done"))
    last = caller.say(speech.pcm) + speech.voiced[1] - 1
    await until(lambda: len(caller.timeline.of_type("response.done")) > before or caller.hung_up())
    replies = [reply for reply in caller.timeline.replies.values() if reply.first_audible]
    assert replies[-1].first_audible and replies[-1].first_audible.arrived > caller.timeline.sent_at(last), said
    return replies[-1]


@pytest.mark.parametrize("way", ["websocket", "sip"])
async def test_a_slow_tool_is_bridged_and_a_goodbye_heard_before_the_call_ends(pop: tuple[str, str], way: str) -> None:
    url, phone = pop
    caller = SipCaller(url, "quiet", 1, phone=phone) if way == "sip" else RealtimeCaller(url, "quiet", 1)
    await caller.dial()
    try:
        await greeting_over(caller)
        booking = await ask(caller, "a booking")
        assert "I am looking into the book." in booking.text, booking.text
        assert "It is booked for 2." in booking.text, booking.text
        await until(lambda: time.monotonic() > caller.timeline.play_end)
        goodbye = await ask(caller, "a goodbye")
        assert goodbye.text.strip() == "All right. Thank you for calling, and goodbye."
        await until(caller.hung_up)
        begins, ends = voiced_span(goodbye.pcm)
        # Twelve syllables, after which the voice's own silence has come as well: nothing was cut off.
        assert ends - begins > 24_000 * 1.5 and goodbye.pcm.size > ends
    finally:
        await caller.hang_up()


async def test_a_caller_who_hangs_up_and_a_server_that_ends_have_it_done_all_the_same(tmp_path: Path) -> None:
    with slow_pop(tmp_path) as (child, _):
        caller = RealtimeCaller(child.url, "quiet", 1)
        await caller.dial()
        await greeting_over(caller)
        speech = await asyncio.to_thread(clips.speech, spoken("booking")[0], 1)
        before = len(caller.timeline.of_type("response.created"))
        caller.say(speech.pcm)
        await until(lambda: len(caller.timeline.of_type("response.created")) > before)
        await caller.hang_up()
        os.kill(child.pid, signal.SIGTERM)
        await until((tmp_path / "booked").exists)


# --- two tools in one answer

BY_OPENAI = """
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
        (tmp_path / "pop.toml").write_text(BY_OPENAI.format(url=url))
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
