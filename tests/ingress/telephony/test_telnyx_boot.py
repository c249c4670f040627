"""A PoP that died and is started again: Telnyx's calls that it left behind are ended, and nobody else's."""

import asyncio
from base64 import b64encode
from typing import Any

import msgspec
import pytest

from tests.ingress.telephony.telnyx_provider import APPLICATION, CALL, call, post, streaming, telnyx
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe.config import Config, HttpConfig, PopConfig
from voicepipe.ingress.telephony.telnyx_api import TelnyxApi
from voicepipe.ingress.telephony.telnyx_boot import ActiveCall, Boot


def config(port: int = 8080, id: str = "local") -> Config:
    return msgspec.structs.replace(Config(), http=HttpConfig(port=port), pop=PopConfig(id=id))


def leg(call_id: str, state: str | None, session: str = "") -> dict[str, Any]:
    """As Telnyx lists it."""
    return {"call_control_id": call_id, "call_session_id": session or call_id, "client_state": state,
            "call_leg_id": "l", "call_duration": 50, "record_type": "call"}  # fmt: skip


def everybodys(port: int) -> list[dict[str, Any]]:
    """Calls of one application, of which "dead" and "alone" were left behind."""
    dead = Boot(config(port), "before")
    placed = b64encode(f"{dead.mark} 1 v3:c".encode()).decode()
    return [
        leg("dead", dead.state),
        leg("none", None),
        leg("other program", b64encode(b"voicepipe").decode()),
        leg("no base64", "%%"),
        leg("another pop", Boot(config(port, "fra2"), "x").state),
        leg("another process", Boot(config(port + 1), "x").state),
        leg("through", dead.state, "session"),
        leg("to them", placed, "session"),
        leg("alone", placed),
    ]


async def test_calls_of_an_earlier_run_end_at_the_start_and_no_others() -> None:
    port = free_port()
    async with telnyx(port=port, active=everybodys(port), application_id=APPLICATION) as (_, api, _):
        await until(lambda: len(api.hung_up) == 2)
        assert api.hung_up == ["dead", "alone"]


async def test_a_pop_whose_port_changes_ends_nothing() -> None:
    """It cannot know whether it is the same one."""
    async with telnyx(active=everybodys(0), application_id=APPLICATION) as (_, api, address):
        assert await post(address, "call.initiated", connection_id=APPLICATION, direction="outgoing") == 200
        assert await post(address, "call.initiated", connection_id=APPLICATION, direction="outgoing") == 200
        assert not api.hung_up


async def test_without_the_applications_number_its_first_webhook_says_it() -> None:
    port = free_port()
    async with telnyx(port=port, active=everybodys(port)) as (_, api, address):
        assert await post(address, "call.initiated", direction="outgoing") == 200
        assert not api.hung_up
        await post(address, "call.initiated", connection_id=APPLICATION, direction="outgoing")
        await until(lambda: len(api.hung_up) == 2)
        await post(address, "call.initiated", connection_id=APPLICATION, direction="outgoing")
        api.active[:] = [leg("through", Boot(config(port), "before").state)]
        placed = everybodys(port)[-1]["client_state"]
        await post(address, "call.hangup", connection_id=APPLICATION, call_control_id="x", client_state=placed)
        await until(lambda: len(api.hung_up) == 3)
        assert api.hung_up == ["dead", "alone", "through"], "once whom they were put through to has hung up"


async def test_a_list_that_fails_is_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    async with telnyx(port=port, active=everybodys(port)[:1]) as (_, api, address):
        api.status["active_calls"] = 500, {}
        await post(address, "call.initiated", connection_id=APPLICATION, direction="outgoing")
        await until(lambda: "left behind are not hung up: active_calls: Telnyx answers HTTP 500" in caplog.text)
        api.status.clear()
        await post(address, "call.initiated", connection_id=APPLICATION, direction="outgoing")
        await until(lambda: api.hung_up == ["dead"])


async def test_a_call_that_an_earlier_run_had_answered_is_taken_up() -> None:
    port = free_port()
    dead = Boot(config(port), "before")
    async with telnyx(port=port, active=[leg(CALL, dead.state)]) as (pop, api, address):
        await post(address, "call.answered", connection_id=APPLICATION, client_state=dead.state)
        async with streaming(address, api):
            await until(lambda: pop.calls)
        await until(lambda: not pop.live)
        assert api.did("streaming_start")[0]["client_state"] != dead.state


async def test_a_call_that_is_taken_up_while_the_start_tidies_up_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    port, listed, go_on, original = free_port(), asyncio.Event(), asyncio.Event(), TelnyxApi.active_calls

    async def slowly(api: TelnyxApi, application: str) -> list[ActiveCall]:
        found = await original(api, application)
        listed.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(TelnyxApi, "active_calls", slowly)
    dead = Boot(config(port), "before")
    active = [leg(CALL, dead.state), leg("dead", dead.state)]
    async with telnyx(port=port, active=active, application_id=APPLICATION) as (pop, api, address):
        await listed.wait()
        await post(address, "call.answered", client_state=dead.state)
        async with streaming(address, api):
            await until(lambda: pop.calls)
            go_on.set()
            await until(lambda: "dead" in api.hung_up)
            assert api.hung_up == ["dead"] and pop.live == 1


async def test_a_live_calls_state_is_not_dead() -> None:
    port = free_port()
    async with telnyx(port=port) as (_, api, address):
        await call(address, connection_id=APPLICATION)
        state = api.did("answer")[0]["client_state"]
        assert Boot(config(port), "another").is_dead(state)
        api.active[:] = [leg(CALL, state)]
        await post(address, "call.answered", connection_id="999", client_state=state)
        assert not api.hung_up and len(api.did("streaming_start")) == 1
