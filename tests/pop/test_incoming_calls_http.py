"""Accepting and rejecting by HTTP: whose key may, what is taken, and a process that has taken over."""

from typing import Any

import httpx
import pytest

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.fake_predecessor import FakePredecessor
from voicepipe.agent import Agent
from voicepipe.base.errors import UnknownCall
from voicepipe.call_api import HookAnswer, IncomingCall, Tenant
from voicepipe.call_settings import Origin
from voicepipe.ingress.calls_api import CALLS
from voicepipe.pop import incoming_calls_http

ONE = IncomingCall("rtc_local.000000000001", "acme", Agent("front-desk"), Origin("+1555"))


class OneCall:
    """One call rings. Implements `IncomingCallsApi`."""

    def __init__(self) -> None:
        self.decided: list[HookAnswer | int] = []

    def find(self, call_id: str, tenant: Tenant) -> IncomingCall:
        if (call_id, tenant.name) != (ONE.id, ONE.owner) or self.decided:
            raise UnknownCall("No such call rings.")
        return ONE

    def accept(self, call: IncomingCall, said: HookAnswer) -> None:
        self.decided.append(said)

    def reject(self, call: IncomingCall, sip_code: int) -> None:
        self.decided.append(sip_code)


@pytest.fixture
def pop() -> FakePop:
    made = FakePop(keys={"sk-acme": Tenant("acme"), "sk-other": Tenant("other")})
    made.incoming = OneCall()
    return made


async def post(address: str, what: str, key: str = "sk-acme", call_id: str = ONE.id, **body: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(trust_env=False) as client:
        url = f"http://{address}{CALLS}/{call_id}/{what}"
        return await client.post(url, headers=headers, json=body) if body else await client.post(url, headers=headers)


@pytest.mark.parametrize(("key", "status"), [("sk-other", 404), ("sk-guessed", 401), ("", 401)])
@pytest.mark.parametrize("what", ["accept", "reject"])
async def test_who_may_not(pop: FakePop, key: str, status: int, what: str) -> None:
    async with serving(pop) as address:
        assert (await post(address, what, key)).status_code == status
    assert isinstance(pop.incoming, OneCall) and not pop.incoming.decided


async def test_an_ek_key_may_not(pop: FakePop) -> None:
    async with serving(pop) as address, httpx.AsyncClient(trust_env=False) as client:
        made = await client.post(f"http://{address}/v1/realtime/client_secrets",
                                 headers={"Authorization": "Bearer sk-acme"})  # fmt: skip
        for what in ("accept", "reject"):
            assert (await post(address, what, made.json()["value"])).status_code == 401


@pytest.mark.parametrize(("body", "status", "code"), [
    ({}, 200, 603), ({"status_code": 486}, 200, 486), ({"status_code": 200}, 400, 0), ({"status_code": "x"}, 400, 0),
])  # fmt: skip
async def test_a_code_that_refuses(pop: FakePop, body: dict[str, Any], status: int, code: int) -> None:
    async with serving(pop) as address:
        assert (await post(address, "reject", **body)).status_code == status
        assert isinstance(pop.incoming, OneCall) and pop.incoming.decided == ([code] if code else [])


async def test_a_session_goes_on_as_it_came(pop: FakePop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming_calls_http, "BEGINS_S", 0.05)
    async with serving(pop) as address:
        answer = await post(address, "accept", type="realtime", model="gpt-realtime", instructions="Be kind.")
        assert answer.status_code == 404 and "its caller has gone" in answer.text, "the call does not begin"
        assert isinstance(pop.incoming, OneCall)
        [said] = pop.incoming.decided
        assert isinstance(said, HookAnswer) and said.agent == ""
        assert said.session == b'{"type":"realtime","model":"gpt-realtime","instructions":"Be kind."}'
        assert (await post(address, "accept")).status_code == 404, "it does not ring any more"


@pytest.mark.parametrize("body", [{"model": "clinic"}, {"type": "transcription"}, {"tools": [{"type": "mcp"}]},
                                  {"model": 1}])  # fmt: skip
async def test_a_session_that_is_none_decides_nothing(pop: FakePop, body: dict[str, Any]) -> None:
    async with serving(pop) as address:
        assert (await post(address, "accept", **body)).status_code == 400
    assert isinstance(pop.incoming, OneCall) and not pop.incoming.decided


async def test_a_call_that_rings_at_the_process_before_is_decided_there(pop: FakePop) -> None:
    before = FakePredecessor()
    async with serving(pop, before) as address:
        answer = await post(address, "accept", call_id="rtc_local.000000000002", model="x")
        assert (answer.status_code, answer.text) == (202, "from before")
    assert before.asked == [(f"{CALLS}/rtc_local.000000000002/accept", b'{"model":"x"}')]
