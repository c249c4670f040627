"""The trace that the request of a call belongs to, at every door that speaks HTTP."""

from contextlib import suppress

import pytest
from starlette.requests import Request
from websockets.asyncio.client import connect

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.telephony.test_twilio import opened, rung
from tests.ingress.telephony.twilio_provider import ENV, TOKEN, signed, streaming
from tests.ingress.webrtc.peer import Peer, post
from tests.support.waiting import until
from voicepipe.call_settings import TraceContext
from voicepipe.ingress.trace_context import trace_context

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
BROUGHT = {"traceparent": PARENT, "tracestate": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"}
COME = TraceContext(PARENT, BROUGHT["tracestate"])


async def test_a_websocket_brings_it() -> None:
    pop = FakePop()
    async with serving(pop) as address, connect(
        f"ws://{address}/v1/realtime", additional_headers=BROUGHT, proxy=None
    ) as socket:  # fmt: skip
        await socket.recv()
        assert pop.calls[0].settings.origin.trace == COME
        await socket.send('{"type": "session.update", "session": {"type": "realtime", "instructions": "Be brief."}}')
        await until(lambda: pop.calls[0].settings.instructions == "Be brief.")
        assert pop.calls[0].settings.origin.trace == COME, "also after a session.update"


async def test_the_offer_of_a_webrtc_call_brings_it() -> None:
    pop, peer = FakePop(), Peer()
    async with serving(pop) as address:
        answer = await post(address, await peer.offer(), **BROUGHT)
        assert answer.status_code == 201 and pop.calls[0].settings.origin.trace == COME
        await peer.answered(answer.text)
        await peer.saw("session.created")
        await peer.close()


async def test_a_providers_stream_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, TOKEN)
    pop = opened()
    async with serving(pop) as address:
        url = f"ws://{address}/twilio/stream"
        async with streaming(url, signed(url) | BROUGHT) as stream:
            await stream.start(await rung(address))
            await until(lambda: pop.calls)
            assert pop.calls[0].settings.origin.trace == COME and pop.calls[0].settings.origin.caller == "+1555"
            with suppress(ConnectionError):
                await stream.send("stop", stop={"accountSid": "AC1", "callSid": "CA1"})


@pytest.mark.parametrize(
    ("headers", "come"),
    [
        ([], TraceContext()),
        ([("tracestate", "a=1"), ("traceparent", PARENT), ("tracestate", "b=2")], TraceContext(PARENT, "a=1,b=2")),
        ([("traceparent", PARENT), ("tracestate", "a" * 513)], TraceContext(PARENT)),
        ([("traceparent", "0" * 513), ("tracestate", "a=1")], TraceContext()),
    ],
)
def test_what_a_request_brings(headers: list[tuple[str, str]], come: TraceContext) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers]
    assert trace_context(Request({"type": "http", "headers": raw})) == come
