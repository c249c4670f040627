"""A call that ends is freed at once, also one that never ran, and not by the garbage collector, which comes late."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.ingress.freed import uncollected
from voicepipe.agent import CallSettings
from voicepipe.call.control import Control
from voicepipe.call_api import ReplyRequest
from voicepipe.config import Config, LimitsConfig
from voicepipe.config.agent_store import AgentStore
from voicepipe.config.pop_config import with_slots
from voicepipe.engines.base import Engines
from voicepipe.engines.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voicepipe.ingress.hosted import HostedCall
from voicepipe.ingress.realtime.clients import RealtimeClients
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import Session
from voicepipe.pop import Pop
from voicepipe.tools import ToolRunner
from voicepipe.turn.events import Item

Does = Callable[[Control, WebSocketLine], Awaitable[None]]


@pytest.fixture
def agents(tmp_path: Path) -> AgentStore:
    (tmp_path / "front-desk.toml").write_text('name = "front-desk"\n')
    return AgentStore(tmp_path)


async def replies(control: Control, line: WebSocketLine) -> None:
    control.add_item(Item("said", text="hello"), None)
    control.respond(ReplyRequest())
    await asyncio.sleep(0.2)


async def waits_for_words(control: Control, line: WebSocketLine) -> None:
    """With a reply that was asked for already."""
    await line.append(bytes(24_000), asyncio.get_running_loop().time())
    await asyncio.sleep(0.2)
    control.commit_input()
    control.respond(ReplyRequest())
    await asyncio.sleep(0.1)


async def nothing(control: Control, line: WebSocketLine) -> None:
    """It is over before the first words of settings are made ahead."""
    await asyncio.sleep(0.1)


@pytest.fixture
def no_collector() -> Iterator[None]:
    with uncollected():
        yield


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("does", [None, nothing, replies, waits_for_words])
async def test_a_call_is_freed_without_the_collector(agents: AgentStore, does: Does | None) -> None:
    engines = Engines(ScriptedVad(), ScriptedAsr(["hello"], 5000, 5000), ScriptedLlm(), ScriptedTts())
    pop = Pop(with_slots(Config()), agents, engines, ToolRunner())
    settings = CallSettings.of(pop.agent(None))
    session = Session.of(settings, id="sess_1")
    with pop.admit(pop.tenant(None), pop.agent(None)) as seat:
        line = WebSocketLine(session.audio.input.format, session.audio.output.format, asyncio.get_running_loop().time)
        call = HostedCall(line, seat, settings, LimitsConfig())
        clients = RealtimeClients(call, session, input=line)
        control = call.control
        assert isinstance(control, Control)
        whole = control._call
        parts = [weakref.ref(part) for part in (call, clients, control, whole, whole.speaking, whole.hearing, line)]
        if does:
            running = asyncio.create_task(call.run())
            await call.running.wait()
            await asyncio.sleep(0)
            await does(control, line)
            call.end("caller")
            await running
            del running
        else:
            call.close()
        del call, clients, control, whole, line
    del seat
    await asyncio.sleep(0.1)
    assert [part() for part in parts] == [None] * len(parts)
