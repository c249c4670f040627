"""A key's share of the event loop, for what it asks for by HTTP."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.ingress.fake_pop import FakeCall, FakePop, limited, serving
from voicepipe.agent import Agent
from voicepipe.base.errors import OverShare
from voicepipe.call_api import CallControl, Tenant
from voicepipe.ingress import loop_share
from voicepipe.ingress.access import AccessControl
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.loop_share import AGAIN_S, KeyLoopShare

PERCENT, STEP_S = 10, 0.01


def key(secret: str = "", tenant: str = "acme") -> Caller:
    return Caller(Tenant(tenant), secret=secret)


def used(shares: KeyLoopShare, *keys: Caller, seconds: float, began: float = 0.0) -> float:
    """Of the loop's time in so many seconds, by keys that ask for 10 ms of it each time that they may."""
    total, now = 0.0, began
    while now < began + seconds:
        for who in keys:
            if is_let_in(shares, who, now):
                shares.took(who, STEP_S, now)
                total += STEP_S
        now += STEP_S
    return total


def is_let_in(shares: KeyLoopShare, who: Caller, now: float) -> bool:
    try:
        shares.check(who, now)
    except OverShare:
        return False
    return True


def test_one_ek_key_gets_a_client_s_share() -> None:
    assert used(KeyLoopShare(PERCENT), key("ek_1"), seconds=100) == pytest.approx(10.25, abs=0.1)


def test_many_ek_keys_get_two_together_and_leave_their_tenant_its_own() -> None:
    shares = KeyLoopShare(PERCENT)
    many = [key(f"ek_{n}") for n in range(30)]
    assert used(shares, *many, seconds=100) == pytest.approx(21, abs=0.5)
    assert used(shares, key(), seconds=100, began=100) == pytest.approx(21, abs=0.5)
    assert is_let_in(shares, key("ek_1", tenant="clinic"), 100)


def test_a_few_greedy_ek_keys_keep_no_other_out() -> None:
    shares, now = KeyLoopShare(PERCENT), 0.0
    greedy = [key(f"ek_{n}") for n in range(4)]
    for _ in range(1000):
        for who in greedy:
            if is_let_in(shares, who, now):
                shares.took(who, 0.03, now)
        now += 0.01
    others = [key(f"ek_other_{n}") for n in range(10)]
    for who in others:
        assert is_let_in(shares, who, now)
        shares.took(who, 0.005, now)
        assert is_let_in(shares, who, now + 1)


def test_who_took_too_much_at_once_is_let_in_again_when_it_was_told() -> None:
    shares, who = KeyLoopShare(PERCENT), key()
    shares.took(who, 60.0, 0.0)
    assert not is_let_in(shares, who, AGAIN_S - 1) and is_let_in(shares, who, AGAIN_S + 1)


# --- at the doors

KEYS = {"sk-acme": Tenant("acme"), "sk-clinic": Tenant("clinic", agents=("clinic",))}
LONG = {"type": "realtime", "x": [{}] * 50_000}
"""What nobody reads, and takes a while to decode."""


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


Ask = Callable[[str, str], Awaitable[httpx.Response]]


async def secret(address: str, key: str) -> httpx.Response:
    async with httpx.AsyncClient(headers=bearer(key), trust_env=False) as client:
        return await client.post(f"http://{address}/v1/realtime/client_secrets", json={"session": LONG})


async def placed(address: str, key: str) -> httpx.Response:
    form = {"sdp": (None, "v=0"), "session": (None, json.dumps(LONG))}
    async with httpx.AsyncClient(headers=bearer(key), trust_env=False) as client:
        return await client.post(f"http://{address}/v1/realtime/calls", files=form)


async def dialled(address: str, key: str) -> httpx.Response:
    try:
        async with connect(f"ws://{address}/v1/realtime", additional_headers=bearer(key), proxy=None):
            return httpx.Response(101)
    except InvalidStatus as refused:
        said = refused.response
        return httpx.Response(said.status_code, headers=dict(said.headers), content=bytes(said.body or b""))


@pytest.mark.parametrize("ask", [secret, placed, dialled])
async def test_a_key_that_asks_for_too_much_is_told_to_wait(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_share, "ONE_SAVED_MS", 20.0)
    monkeypatch.setattr(loop_share, "MANY_SAVED_MS", 20.0)
    pop = FakePop(limited(client_percent=1), KEYS)
    async with serving(pop) as address:
        made = await secret(address, "sk-acme")
        key = "sk-acme" if ask is secret else made.json()["value"]
        for _ in range(100):
            answer = await ask(address, key)
            if answer.status_code == 429:
                break
        assert answer.status_code == 429 and answer.headers["Retry-After"] == str(AGAIN_S)
        error = answer.json()["error"]
        assert error["code"] == "rate_limit_exceeded" and "shorter sessions" in error["message"]
        assert (await dialled(address, "sk-clinic")).status_code == 101, "another tenant has its own share"


@pytest.mark.parametrize("path", ["client_secrets", "calls"])
async def test_what_is_refused_is_not_read(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer comes although the body never does."""

    def refuse(shares: KeyLoopShare, who: Caller, now: float) -> None:
        raise OverShare("Ask less often.")

    monkeypatch.setattr(KeyLoopShare, "check", refuse)
    async with serving(FakePop(keys=KEYS)) as address:
        host, port = address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        asked = f"POST /v1/realtime/{path} HTTP/1.1", f"Host: {address}", "Authorization: Bearer sk-acme"
        writer.write("\r\n".join([*asked, "Content-Length: 500000", "", ""]).encode())
        assert b" 429 " in await reader.readline()
        writer.close()


async def test_what_is_read_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a request that is not carried out in the end."""
    steps: list[str] = []
    monkeypatch.setattr(KeyLoopShare, "took", lambda shares, who, seconds, now: steps.append(who.tenant.name))
    async with serving(FakePop(limited(event_bytes=1024), KEYS)) as address:
        refused = await secret(address, "sk-acme")
        assert refused.json()["error"]["code"] == "request_too_large" and set(steps) == {"acme"}


async def test_a_websocket_s_call_is_made_on_its_key_s_account(monkeypatch: pytest.MonkeyPatch) -> None:
    paid: list[float] = []
    monkeypatch.setattr(KeyLoopShare, "took", lambda shares, who, seconds, now: paid.append(seconds))
    pop = FakePop(keys=KEYS)
    find, wrap = pop.agent, pop.wrap

    def busy(seconds: float = 0.05) -> None:
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass

    def slowly_found(name: str | None) -> Agent:
        busy()
        return find(name)

    def slowly_made(call: FakeCall) -> CallControl:
        busy()
        return wrap(call)

    monkeypatch.setattr(pop, "agent", slowly_found)
    pop.wrap = slowly_made
    async with serving(pop) as address:
        assert (await dialled(address, "sk-acme")).status_code == 101
    assert sum(paid) >= 0.1, "the agent is found and the call made"


async def test_a_websocket_that_is_told_to_wait_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is its token used up."""
    monkeypatch.setattr(loop_share, "MANY_SAVED_MS", 0.0)
    pop = FakePop(keys=KEYS)
    begun: list[object] = []
    monkeypatch.setattr(pop, "admit", lambda tenant, agent: begun.append(tenant))
    monkeypatch.setattr(AccessControl, "begins", lambda access, who: begun.append(who))
    async with serving(pop) as address:
        answer = await dialled(address, "sk-acme")
    assert answer.status_code == 429 and answer.headers["Retry-After"] == str(AGAIN_S)
    assert not begun
