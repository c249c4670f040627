"""Nothing of a call that has ended waits for Python's cycle collector, which comes late: by every door, however it
ended, also where it never began."""

import asyncio
import gc
import json
import sys
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import aioice.ice
import pytest
from aiortc.rtcsctptransport import AbortChunk, Chunk, SackChunk
from websockets.asyncio.client import connect

from latency_probes.webrtc import CALLS, Placed, place
from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.sip.conftest import hasty  # noqa: F401
from tests.ingress.sip.peer import Phone, phone, sip
from tests.ingress.telephony.test_twilio import opened, rung
from tests.ingress.telephony.twilio_provider import ENV, TOKEN, Stream, signed
from tests.ingress.webrtc.conftest import loopback_peers  # noqa: F401
from tests.ingress.webrtc.peer import post, web, webrtc
from tests.support.collector import uncollected
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from tests.support.waiting import until
from voicepipe.call.call import Call
from voicepipe.call_api import ReplyRequest
from voicepipe.call_settings import CallSettings
from voicepipe.config import Config, LimitsConfig
from voicepipe.config.agent_store import AgentStore
from voicepipe.config.pop_config import with_slots
from voicepipe.conversation.events import Item
from voicepipe.engines.base import Engines
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.realtime.clients import RealtimeClients
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.webrtc import peer
from voicepipe.ingress.webrtc.channel import UNSENT
from voicepipe.pop.pop import Pop
from voicepipe.rtp import sdp
from voicepipe.rtp.codec import OPUS
from voicepipe.rtp.transport import Transport, UdpNetwork
from voicepipe.tools.tool_runner import ToolRunner

ENDS = 4
"""Calls: what one alone leaves may be the last one of something."""
PARTS = (
    "aiortc.", "aioice.", "OpenSSL.SSL.C", "voicepipe.rtp.", "voicepipe.audio.", "voicepipe.ingress.rtp_line",
    "voicepipe.ingress.far_", "voicepipe.ingress.blocks", "voicepipe.ingress.webrtc.", "voicepipe.ingress.realtime.",
    "voicepipe.ingress.sip.sip_", "voicepipe.ingress.sip.dialog", "voicepipe.ingress.hosted_call",
    "voicepipe.ingress.telephony.stream",
)  # fmt: skip
"""Beginnings of the names of what a call is made of. Of pyOpenSSL its connections and contexts: the small helper by
which a context checks certificates is a circle of its own."""


def alive() -> Counter[str]:
    """How many there are of each kind of part."""
    counts = Counter[str]()
    for kind, many in Counter(map(type, gc.get_objects())).items():
        if (name := f"{kind.__module__}.{kind.__name__}").startswith(PARTS):
            counts[name] += many
    return counts


def test_the_parts_of_a_call_are_called_so() -> None:
    names = [f"{module}.{name}" for module, loaded in sys.modules.copy().items() for name in vars(loaded)]
    assert not [part for part in PARTS if not any(name.startswith(part) for name in names)]


async def nothing_left(pop: FakePop, one: Callable[[], Awaitable[None]]) -> None:
    """Nothing is left of calls such as `one` places and ends, at `pop`, which is served."""
    await one()
    await settled(pop)
    pop.calls.clear()
    with uncollected():
        before = alive()
        for _ in range(ENDS):
            await one()
        await settled(pop)
        pop.calls.clear()
        try:
            await until(lambda: not (alive() - before), 10)
        except TimeoutError:
            raise AssertionError(f"left of {ENDS} calls: {alive() - before}") from None


# --- by WebSocket

Does = Callable[[Call, WebSocketLine], Awaitable[None]]


@pytest.fixture
def agents(tmp_path: Path) -> AgentStore:
    (tmp_path / "front-desk.toml").write_text('name = "front-desk"\n')
    return AgentStore(tmp_path)


async def replies(control: Call, line: WebSocketLine) -> None:
    control.add_item(Item("said", text="hello"), None)
    control.respond(ReplyRequest())
    await asyncio.sleep(0.2)


async def waits_for_words(control: Call, line: WebSocketLine) -> None:
    """With a reply that was asked for already."""
    await line.append(bytes(24_000), asyncio.get_running_loop().time())
    await asyncio.sleep(0.2)
    control.commit_input()
    control.respond(ReplyRequest())
    await asyncio.sleep(0.1)


async def nothing(control: Call, line: WebSocketLine) -> None:
    """It is over before the first words of settings are made ahead."""
    await asyncio.sleep(0.1)


@pytest.mark.parametrize("does", [None, nothing, replies, waits_for_words])
async def test_a_call_by_websocket(agents: AgentStore, does: Does | None) -> None:
    """`None`: it never runs."""
    with uncollected():
        engines = Engines(ScriptedVad(), ScriptedAsr(["hello"], 5000, 5000), ScriptedLlm(), ScriptedTts())
        pop = Pop(with_slots(Config()), agents, engines, ToolRunner())
        settings = CallSettings.of(pop.agent(None))
        session = Session.of(settings, id="sess_1")
        with pop.admit(pop.tenant(None), pop.agent(None)) as slot:
            line = WebSocketLine(
                session.audio.input.format, session.audio.output.format, asyncio.get_running_loop().time
            )
            call = HostedCall(line, slot, settings, LimitsConfig())
            clients = RealtimeClients(call, session)
            control = call.control
            assert isinstance(control, Call)
            whole_call = (call, clients, control, control._speaking, control._hearing, line)
            left = [weakref.ref(part) for part in whole_call]
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
            del call, clients, control, line, whole_call
        del slot
        await asyncio.sleep(0.1)
        assert [part() for part in left] == [None] * len(left)


# --- by SIP

EndsByPhone = Callable[[Phone, FakePop], Awaitable[None]]


async def hangs_up_by_phone(ann: Phone, pop: FakePop) -> None:
    await ann.dial()
    await asyncio.sleep(0.1)
    assert (await ann.hang_up()).code == 200


async def is_hung_up_by_phone(ann: Phone, pop: FakePop) -> None:
    await ann.dial()
    await pop.calls[-1].line.hang_up()
    await ann.got("BYE")


async def vanishes_by_phone(ann: Phone, pop: FakePop) -> None:
    """Without a word, and nobody answers our BYE."""
    await ann.dial()
    ann.close()


async def acknowledges_no_answer(ann: Phone, pop: FakePop) -> None:
    ann.invite()
    await ann.final("INVITE")
    ann.close()


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("end", [hangs_up_by_phone, is_hung_up_by_phone, vanishes_by_phone, acknowledges_no_answer])
async def test_a_call_by_sip(end: EndsByPhone) -> None:
    pop = FakePop(sip(silent_ms=500))

    async def one() -> None:
        async with phone(pop) as ann:
            await end(ann, pop)

    async with serving(pop):
        await nothing_left(pop, one)


# --- by a media stream


async def test_a_call_of_a_provider_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, TOKEN)
    pop, sids = opened(), count()

    async def one() -> None:
        url, sid = f"ws://{address}/twilio/stream", f"CA{next(sids)}"
        async with connect(url, additional_headers=signed(url), proxy=None) as socket:
            await Stream(socket, sid).start(await rung(address, sid))
            await until(lambda: pop.live)
        await settled(pop)

    async with serving(pop) as address:
        await nothing_left(pop, one)


# --- by WebRTC


async def by_webrtc(one: Callable[[str], Awaitable[None]]) -> None:
    pop = FakePop(webrtc(connect_ms=1000))
    async with serving(pop) as address:
        await nothing_left(pop, lambda: one(address))


End = Callable[[str, Placed], Awaitable[None]]


async def hangs_up(address: str, placed: Placed) -> None:
    await placed.hang_up()


async def is_hung_up(address: str, placed: Placed) -> None:
    async with web(address) as client:
        (call,) = (await client.get("/v1/realtime/calls")).json()["data"]
        assert (await client.delete(f"/v1/realtime/calls/{call['id']}")).status_code == 200
    await asyncio.wait_for(placed.transport.gone(), 60)


async def aborts_sctp(address: str, placed: Placed) -> None:
    await placed.transport.sctp._send_chunk(AbortChunk())
    await asyncio.sleep(0.05)
    await placed.hang_up()


async def sends_too_much(address: str, placed: Placed) -> None:
    placed.transport.sctp._remote_max_message_size = 0
    placed.channel.send("x" * 300_000)
    await asyncio.wait_for(placed.transport.gone(), 60)


async def acknowledges_nothing(address: str, placed: Placed) -> None:
    """It answers on every other layer, and has more events coming than our side lets wait."""
    sctp = placed.transport.sctp
    send = sctp._send_chunk

    async def without_sacks(chunk: Chunk) -> None:
        if not isinstance(chunk, SackChunk):
            await send(chunk)

    sctp._send_chunk = without_sacks  # type: ignore[method-assign]
    update = json.dumps({"type": "session.update", "session": {"type": "realtime", "instructions": "x" * 100_000}})
    for _ in range(2 * UNSENT // len(update)):
        placed.channel.send(update)
    await until(lambda: not placed.channel.bufferedAmount)
    async with web(address) as client:
        (call,) = (await client.get(CALLS)).json()["data"]
        assert (await client.delete(f"{CALLS}/{call['id']}")).status_code == 200
        while (await client.get(CALLS)).json()["data"]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    del sctp._send_chunk  # a circle of our own


async def vanishes(address: str, placed: Placed) -> None:
    await placed.vanish()


async def call(address: str, end: End) -> None:
    placed = await place(f"http://{address}", "", "")
    try:
        await until(lambda: placed.channel.readyState == "open")
        for _ in range(10):
            placed.send(b"\xfc\xff\xfe")
        await end(address, placed)
    finally:
        await placed.hang_up()


async def never_connects(address: str) -> None:
    transport = Transport(UdpNetwork(), controlling=True)
    answer = await post(address, sdp.offer(transport, await transport.gather(), (OPUS,)))
    assert answer.status_code == 201
    await transport.close()


@pytest.mark.parametrize("end", [hangs_up, is_hung_up, aborts_sctp, sends_too_much])
async def test_a_call_by_webrtc(end: End) -> None:
    await by_webrtc(lambda address: call(address, end))


async def test_a_call_by_webrtc_whose_caller_never_connected() -> None:
    await by_webrtc(never_connects)


async def test_a_call_by_webrtc_whose_caller_is_gone_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aioice.ice, "CONSENT_INTERVAL", 0.2)
    monkeypatch.setattr(aioice.ice, "CONSENT_FAILURES", 2)
    await by_webrtc(lambda address: call(address, vanishes))


async def test_a_call_by_webrtc_whose_caller_acknowledges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCTP asks for acknowledgements for ever, and consent goes on: only our own time limit ends the call."""
    monkeypatch.setattr(peer, "LINGER", 0.5, raising=False)
    async with asyncio.timeout(60):
        await by_webrtc(lambda address: call(address, acknowledges_nothing))
