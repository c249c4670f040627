"""A server without keys, and who is not of its machine."""

import asyncio

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.ingress.fake_pop import FakePop, serving
from voicepipe.base.errors import ConfigError
from voicepipe.call_api import Tenant
from voicepipe.config import Config, TenantConfig
from voicepipe.config.phone_config import SipConfig, SipUser
from voicepipe.ingress.loopback_only import PROXIED, check_phones

PAGES = ("/v1/realtime/calls", "/dashboard", "/healthz")
KEYED = Config(tenants=(TenantConfig(name="acme", key_env="ACME_KEY"),))


@pytest.mark.parametrize("mark", PROXIED)
async def test_a_proxy_that_says_so_does_not_let_the_world_in(mark: str) -> None:
    async with serving(FakePop()) as address, httpx.AsyncClient(trust_env=False) as client:
        for page in PAGES:
            assert (await client.get(f"http://{address}{page}")).status_code == 200
            answer = await client.get(f"http://{address}{page}", headers={mark: "203.0.113.9"})
            assert answer.status_code == 403 and "add a [[tenants]] table" in answer.text
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://{address}/v1/realtime", additional_headers={mark: "203.0.113.9"}, proxy=None)
        assert refused.value.response.status_code == 403


async def test_with_keys_a_proxy_may_stand_in_front() -> None:
    pop = FakePop(KEYED, keys={"sk-acme": Tenant("acme")})
    async with serving(pop) as address, httpx.AsyncClient(trust_env=False) as client:
        headers = {"x-forwarded-for": "203.0.113.9", "authorization": "Bearer sk-acme"}
        assert (await client.get(f"http://{address}/v1/realtime/calls", headers=headers)).status_code == 200


@pytest.mark.parametrize("headers", ["Host: [", "Host: 127.0.0.1\r\nOrigin: http://["])
async def test_an_address_that_is_none_is_refused(headers: str, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(FakePop()) as address:
        host, _, port = address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET /healthz HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403")) and "Traceback" not in caplog.text


@pytest.mark.parametrize("headers", [{"via": "1.1 proxy"}, {"origin": "http://elsewhere.test"}])
async def test_who_is_not_of_this_machine_is_in_the_log(
    headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(FakePop()) as address, httpx.AsyncClient(trust_env=False) as client:
        await client.get(f"http://{address}/healthz", headers=headers)
        with pytest.raises(InvalidStatus):
            await connect(f"ws://{address}/v1/realtime", additional_headers=headers, proxy=None)
        told = [text for text in caplog.messages if "refused with 403" in text]
        assert [text.split(" from ")[0] for text in told] == ["'/healthz'", "'/v1/realtime'"]
        for _ in range(100):
            await client.get(f"http://{address}/healthz", headers=headers)
    assert len([text for text in caplog.messages if "refused with 403" in text]) < 60, "floods do not fill the log"


def test_who_is_named_needs_a_port_to_call() -> None:
    desk = SipConfig(users=(SipUser(name="desk", password_env="DESK_PASSWORD"),))
    with pytest.raises(ConfigError, match="sip.port = 0 lets nobody call"):
        check_phones(Config(sip=desk))
