"""Each provider's door is there if its secret is configured."""

import asyncio
from typing import Any

import pytest
from starlette.routing import Route, WebSocketRoute
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.telephony import telnyx_provider, twilio_provider
from voicepipe.base.errors import ConfigError
from voicepipe.config import parse
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.telephony.telephony_http import Providers


async def test_without_a_key_there_is_nothing() -> None:
    async with serving(FakePop()) as address:
        assert await telnyx_provider.post(address, "call.initiated", direction="incoming") in (404, 405)


CALL = {"CallSid": "CA1", "AccountSid": "AC1", "From": "+1555", "To": "+4930123", "CallStatus": "ringing"}


async def test_without_a_token_there_is_nothing() -> None:
    async with serving(FakePop()) as address:
        assert (await twilio_provider.post(f"http://{address}/twilio/voice", CALL)).status_code in (404, 405)
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://{address}/twilio/stream", proxy=None)
        assert refused.value.response.status_code in (403, 404)


def providers(**tables: Any) -> Providers:
    return Providers(FakePop(parse(tables)), Calls())


def paths(of: Providers) -> set[str]:
    return {route.path for route in of.routes() if isinstance(route, Route | WebSocketRoute)}


def test_what_is_configured_is_open_and_that_it_needs_no_keys_is_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert paths(providers()) == set() and not caplog.messages
    monkeypatch.setenv("TWILIO_TOKEN", "secret")
    twilio = {"auth_token_env": "TWILIO_TOKEN"}
    assert paths(providers(twilio=twilio)) == {"/twilio/voice", "/twilio/after", "/twilio/stream"}
    assert "there are no [[tenants]]" in caplog.text
    caplog.clear()
    tenants = [{"name": "acme", "key_env": "ACME_KEY"}]
    assert paths(providers(twilio=twilio, tenants=tenants)) and not caplog.messages


def test_a_secret_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TWILIO_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="TWILIO_TOKEN"):
        providers(twilio={"auth_token_env": "TWILIO_TOKEN"})


async def test_a_token_changes_while_the_server_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_TOKEN", twilio_provider.TOKEN)
    monkeypatch.setenv("TWILIO_TOKEN", "old")
    pop = FakePop(parse({"twilio": {"auth_token_env": "TWILIO_TOKEN"}}))
    async with serving(pop) as address:
        url = f"http://{address}/twilio/voice"
        assert (await twilio_provider.post(url, CALL)).status_code == 403
        fresh = parse({"twilio": {"auth_token_env": "OTHER_TOKEN"}})
        (await asyncio.to_thread(pop.rereads.read, fresh))()
        assert (await twilio_provider.post(url, CALL)).status_code == 200
