"""What the server is told of those who come, and of what it needs to begin."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.test_connection import ended, raw
from voicepipe.base.errors import ConfigError
from voicepipe.call_api import Tenant
from voicepipe.config import Config, HttpConfig, TenantConfig
from voicepipe.ingress import server
from voicepipe.ingress.certificate import check_certificate
from voicepipe.serving.lan import certificate


@pytest.mark.slow
async def test_behind_a_proxy_a_client_without_end_is_refused_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    config = Config(tenants=(TenantConfig(name="honest", key_env="HONEST_KEY"),))
    pop = FakePop(config, keys={"sk-honest": Tenant("honest")})
    async with serving(pop) as address:

        async def asks(client: str, times: int) -> bytes:
            """Each request on its own connection would do as well: proxies do either."""
            request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: %s\r\n" % client.encode()
            said = (request + b"\r\n") * (times - 1) + request + b"Connection: close\r\n\r\n"
            async with raw(address, said, source="127.0.0.1") as streams:
                return await ended(streams)

        flooded = await asks("198.51.100.1", 2500)
        assert flooded.count(b" 200 OK") < 500 and flooded.count(b" 429 Too Many Requests") > 1500
        assert (await asks("192.0.2.1", 3)).count(b" 200 OK") == 3
        headers = {"Authorization": "Bearer sk-honest", "X-Forwarded-For": "192.0.2.2"}
        async with connect(f"ws://{address}/v1/realtime", additional_headers=headers, proxy=None) as socket:
            assert "session.created" in str(await socket.recv())
        headers = {"X-Forwarded-For": "198.51.100.1"}
        codes = []
        while 429 not in codes:  # A token may have come back meanwhile: 401 then, for there is no key.
            await asks("198.51.100.1", 50)
            with pytest.raises(InvalidStatus) as refused:
                await connect(f"ws://{address}/v1/realtime", additional_headers=headers, proxy=None)
            codes.append(refused.value.response.status_code)
        assert b"too_many_requests" in refused.value.response.body
    told = [line for line in caplog.messages if "198.51.100.1" in line and "too many" in line]
    assert told[0] == "requests from 198.51.100.1, by the proxy 127.0.0.1, are refused: too many" and len(told) < 100


def test_an_address_that_is_taken_is_told_in_a_sentence() -> None:
    with server.bind(HttpConfig(port=0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigError, match=rf"Cannot listen on 127\.0\.0\.1:{port} \(Address already in use.*: set http.host"
        ):
            server.bind(HttpConfig(port=port))


def test_an_ipv6_address_can_be_listened_on() -> None:
    with server.bind(HttpConfig(host="::1", port=0)) as listener:
        assert listener.family is socket.AF_INET6


async def test_a_certificate_that_cannot_be_used_is_told_at_the_start(tmp_path: Path) -> None:
    pem = str(await asyncio.to_thread(certificate, tmp_path / "own.pem", {"127.0.0.1"}))
    (tmp_path / "none.pem").write_text("nothing")
    check_certificate(Config())
    check_certificate(Config(http=HttpConfig(cert=pem, key=pem)))
    for cert in ("/nowhere.pem", str(tmp_path / "none.pem")):
        http = HttpConfig(port=0, cert=cert, key=pem)
        with pytest.raises(ConfigError, match="http.cert and http.key cannot be used"):
            check_certificate(Config(http=http))
        listener = server.bind(http)
        with pytest.raises(ConfigError, match="http.cert and http.key cannot be used"):
            await server.serve(nowhere, listener, http, 10, 1000, asyncio.Event())
        assert listener.fileno() == -1, "the port is free again"


async def nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    """Nobody comes."""


async def test_a_request_that_fails_was_logged_already_and_a_websocket_was_not() -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    told: Any = server._quiet(fails)
    await told({"type": "http"}, None, None)
    with pytest.raises(ZeroDivisionError):
        await told({"type": "websocket"}, None, None)
