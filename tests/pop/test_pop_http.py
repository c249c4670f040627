"""Who gets in, with which key and which session, and what the server says about itself."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest
from openai import AsyncOpenAI, AuthenticationError, NotFoundError
from openai.types import Model
from openai.types.realtime import ClientSecretCreateResponse
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

from tests.ingress.fake_pop import FakePop, limited, serving
from tests.support.waiting import until
from voicepipe.base.errors import ConfigError, Draining, EngineDown, PopFull, Unauthorized
from voicepipe.call_api import Tenant
from voicepipe.config import Config, HttpConfig, TenantConfig
from voicepipe.health import Health
from voicepipe.ingress import loopback_only, server
from voicepipe.ingress.api_keys import Caller, ClientSecrets
from voicepipe.pop import pop_http

TENANTS = (TenantConfig(name="acme", key_env="ACME_KEY"),)
KEYS = {"sk-acme": Tenant("acme"), "sk-clinic": Tenant("clinic", agents=("clinic",))}


def keyed(**limits: int) -> FakePop:
    return FakePop(msgspec.structs.replace(limited(**limits), tenants=TENANTS), KEYS)


@asynccontextmanager
async def requests(pop: FakePop) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(pop) as address, httpx.AsyncClient(base_url=f"http://{address}", trust_env=False) as client:
        yield client


async def opened(address: str, path: str = "?model=front-desk", **options: Any) -> dict[str, Any]:
    """The session of a call that was let in."""
    async with connect(f"ws://{address}/v1/realtime{path}", proxy=None, **options) as socket:
        session: dict[str, Any] = json.loads(await socket.recv())["session"]
        session["_subprotocol"] = socket.subprotocol
        return session


async def refused(address: str, path: str = "?model=front-desk", **options: Any) -> tuple[int, str, Any]:
    with pytest.raises(InvalidStatus) as caught:
        await opened(address, path, **options)
    response = caught.value.response
    return response.status_code, json.loads(response.body or b"{}")["error"]["code"], response.headers


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def test_keys_open_the_door() -> None:
    async with serving(keyed()) as address:
        assert (await refused(address))[:2] == (401, "invalid_api_key")
        assert (await refused(address, additional_headers=bearer("sk-wrong")))[0] == 401
        assert (await refused(address, additional_headers=bearer("ek_unknown")))[0] == 401
        session = await opened(address, additional_headers=bearer("sk-acme"))
        assert session["model"] == "front-desk" and session["_subprotocol"] is None


async def test_browsers_send_their_key_as_a_subprotocol() -> None:
    async with serving(keyed()) as address:
        offered = ["realtime", "openai-insecure-api-key.sk-acme", "openai-agents-sdk.1"]
        session = await opened(address, subprotocols=[Subprotocol(name) for name in offered])
        assert session["_subprotocol"] == "realtime"


async def test_a_tenant_reaches_its_own_agents_alone() -> None:
    async with serving(keyed()) as address:
        mine = bearer("sk-clinic")
        assert (await refused(address, additional_headers=mine))[:2] == (404, "model_not_found")
        for path in ("?model=clinic", "?model=gpt-realtime", ""):
            assert (await opened(address, path, additional_headers=mine))["model"] == "clinic"


async def test_unknown_models_mean_the_default_agent() -> None:
    async with serving(FakePop()) as address:
        assert (await opened(address, "?model=gpt-realtime"))["model"] == "front-desk"
        assert (await opened(address, ""))["model"] == "front-desk"
        assert (await opened(address, "?model=clinic"))["model"] == "clinic"


async def test_sideband_misses() -> None:
    async with serving(FakePop()) as address:
        for call_id in ("rtc_1", ""):  # An id that somebody forgot to fill in places no call.
            assert (await refused(address, f"?call_id={call_id}"))[:2] == (404, "call_id_not_found")


@pytest.mark.parametrize(
    ("error", "code"),
    [(PopFull("full"), "pop_full"), (Draining("bye"), "draining"), (EngineDown("soon"), "engine_down")],
)
async def test_a_pop_that_takes_no_calls(error: Exception, code: str, caplog: pytest.LogCaptureFixture) -> None:
    pop = FakePop()
    pop.refuse = error
    async with serving(pop) as address:
        status, said, headers = await refused(address)
        assert (status, said) == (503, code) and int(headers["Retry-After"]) > 0
    levels = [record.levelname for record in caplog.records if record.levelname != "INFO"]
    assert levels == ["WARNING"], "the reason, and nothing of a failed handshake"
    assert any(" refused with 503: " in message for message in caplog.messages)


async def test_a_client_secret_carries_its_session() -> None:
    async with serving(keyed()) as address:
        openai = AsyncOpenAI(api_key="sk-acme", base_url=f"http://{address}/v1", max_retries=0)
        secret = await openai.realtime.client_secrets.create(
            session={"type": "realtime", "model": "clinic", "instructions": "Speak slowly.",
                     "audio": {"input": {"format": {"type": "audio/pcmu"}}}},
            expires_after={"anchor": "created_at", "seconds": 60},
        )  # fmt: skip
        ClientSecretCreateResponse.model_validate(secret.model_dump())
        assert secret.value.startswith("ek_") and secret.session.type == "realtime"
        session = await opened(address, "?model=gpt-realtime", additional_headers=bearer(secret.value))
        assert session["model"] == "clinic" and session["instructions"] == "Speak slowly."
        assert session["audio"]["input"]["format"] == {"type": "audio/pcmu"}
        again = await httpx.AsyncClient(trust_env=False).post(
            f"http://{address}/v1/realtime/client_secrets", headers=bearer(secret.value)
        )
        assert again.status_code == 401


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"{", None),
        (b'{"expires_after": {"seconds": 5}}', "expires_after.seconds"),
        (b'{"session": {"audio": {"output": {"speed": "fast"}}}}', "session.audio.output.speed"),
        (b'{"session": {"type": "transcription"}}', "session.type"),
        (b'{"session": []}', "session"),
        (b'{"session": {"instructions": "\xff"}}', None),
        (b'{"session": {"x": \xff}}', None),
        (b'{"session": {"x": %s1%s}}' % (b"[" * 5000, b"]" * 5000), None),
        (b" " * 2_000_000, None),
    ],
)
async def test_client_secrets_say_what_is_wrong(body: bytes, param: str | None) -> None:
    async with requests(FakePop()) as client:
        answer = await client.post("/v1/realtime/client_secrets", content=body)
        assert answer.status_code == 400 and answer.json()["error"]["param"] == param


async def test_client_secrets_need_a_key() -> None:
    async with requests(keyed()) as client:
        answer = await client.post("/v1/realtime/client_secrets", json={})
        assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("session", [b'{"x":[%s]}', b'{"x":"%s"}'])
async def test_a_session_that_is_too_long_is_not_even_decoded(session: bytes) -> None:
    """A form's session and the body of a secret are bounded as a WebSocket's message is."""
    pop = FakePop(limited(event_bytes=4096))
    session %= b",".join([b"[]"] * 3000)
    async with requests(pop) as client:
        secret = await client.post("/v1/realtime/client_secrets", content=b'{"session":%s}' % session)
        assert secret.status_code == 400 and secret.json()["error"]["code"] == "request_too_large"
        assert "4096 bytes" in secret.json()["error"]["message"]
        call = await client.post("/v1/realtime/calls", files={"sdp": (None, "v=0"), "session": (None, session)})
        assert call.status_code == 400 and call.json()["error"]["param"] == "session"
        assert "4096 bytes" in call.json()["error"]["message"]


async def test_a_session_whose_agent_has_a_lock_by_now_is_refused_before_it_is_accepted() -> None:
    pop = keyed()
    async with serving(pop) as address:
        async with httpx.AsyncClient(
            base_url=f"http://{address}", headers=bearer("sk-acme"), trust_env=False
        ) as client:
            asked = {"session": {"type": "realtime", "instructions": "Sell shoes."}}
            made = (await client.post("/v1/realtime/client_secrets", json=asked)).json()
        pop.known["front-desk"] = msgspec.structs.replace(pop.known["front-desk"], locked=("instructions",))
        assert (await refused(address, additional_headers=bearer(made["value"])))[:2] == (400, "locked")


def test_secrets_expire() -> None:
    now = 1000.0
    secrets = ClientSecrets(clock=lambda: now)
    caller = Caller(Tenant("acme"), "front-desk")
    key, expires_at = secrets.make(caller, 10)
    assert expires_at == 1010 and secrets.find(key) == caller
    now = 1010.0
    with pytest.raises(Unauthorized):
        secrets.find(key)


@pytest.mark.parametrize(
    ("host", "origin", "allowed"),
    [
        ("{address}", None, True),
        ("{address}", "http://{address}", True),
        ("localhost:{port}", "http://localhost:{port}", True),
        ("{address}", "https://app.example", True),
        ("{address}", "https://evil.example", False),
        ("{address}", "null", False),
        ("evil.example:{port}", "http://evil.example:{port}", False),  # its name was rebound to 127.0.0.1
        ("evil.example:{port}", None, False),
        ("{address}", "http://localhost:1", False),
    ],
)
async def test_without_keys_other_sites_may_not_call(host: str, origin: str | None, allowed: bool) -> None:
    config = msgspec.structs.replace(Config(), http=HttpConfig(origins=("https://app.example",)))
    async with serving(FakePop(config)) as address:
        port = address.split(":")[1]
        names = {"address": address, "port": port}
        url = f"ws://{host.format(**names)}/v1/realtime"
        ours = Origin(origin.format(**names)) if origin else None
        options: dict[str, Any] = {"host": "127.0.0.1", "port": int(port), "origin": ours, "proxy": None}
        if allowed:
            async with connect(url, **options) as socket:
                assert "session.created" in str(await socket.recv())
        else:
            with pytest.raises(InvalidStatus) as caught:
                await connect(url, **options)
            assert caught.value.response.status_code == 403
        async with httpx.AsyncClient(trust_env=False) as client:
            headers = {"Host": host.format(**names)} | ({"Origin": ours} if ours else {})
            answer = await client.post(f"http://{address}/v1/realtime/client_secrets", headers=headers)
            assert answer.status_code == (200 if allowed else 403)


async def test_with_keys_any_site_may_call() -> None:
    async with serving(keyed()) as address:
        await opened(address, additional_headers=bearer("sk-acme"), origin=Origin("https://evil.example"))


def test_a_public_address_needs_keys() -> None:
    public = msgspec.structs.replace(Config(), http=HttpConfig(host="0.0.0.0"))
    with pytest.raises(ConfigError, match="no tenant has a key"):
        loopback_only.check_exposure(public)
    loopback_only.check_exposure(msgspec.structs.replace(public, tenants=TENANTS))
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        loopback_only.check_exposure(msgspec.structs.replace(Config(), http=HttpConfig(host=host)))


async def test_a_taken_port_is_a_sentence() -> None:
    with server.bind(HttpConfig(port=0)) as listener, pytest.raises(ConfigError, match="Cannot listen"):
        server.bind(HttpConfig(port=listener.getsockname()[1]))


async def test_a_useless_certificate_is_a_sentence(tmp_path: Any) -> None:
    (tmp_path / "cert.pem").write_text("not a certificate")
    cert = str(tmp_path / "cert.pem")
    pop = FakePop()
    pop.config = msgspec.structs.replace(pop.config, http=HttpConfig(port=0, cert=cert, key=cert))
    with pytest.raises(ConfigError, match="PEM"):
        await pop_http.serve(pop)


async def test_refusals_in_masses_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = SimpleNamespace(monotonic=lambda: 1000.0)  # However long a slow machine takes for them.
    monkeypatch.setattr("voicepipe.ingress.refusal_log.time", at_once)
    async with serving(keyed()) as address:
        async with httpx.AsyncClient(base_url=f"http://{address}", trust_env=False) as client:
            for _ in range(100):
                assert (await client.get("/v1/models")).status_code == 401
                assert (await client.get("/v1/nothing")).status_code == 404
        for _ in range(20):
            with pytest.raises(InvalidStatus):
                await connect(f"ws://{address}/v1/realtime", proxy=None)
    assert "'/v1/models' from 127.0.0.1 refused with 401: The key is not known." in caplog.messages
    assert len(caplog.records) <= 25 and "HTTP requests are refused in masses" in caplog.text


async def test_a_request_that_fails_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> Health:
        raise RuntimeError("a defect")

    pop = FakePop()
    async with requests(pop) as client:
        pop.health = fails  # type: ignore[method-assign]
        for _ in range(3):
            answer = await client.get("/healthz")
            assert answer.status_code == 500 and answer.json()["error"]["code"] == "server_error"
    assert [record.getMessage()[:20] for record in caplog.records] == ["GET /healthz failed "] * 3
    assert caplog.text.count("RuntimeError: a defect") == 3


async def test_health() -> None:
    pop = FakePop()
    async with requests(pop) as client:
        assert (await client.get("/healthz")).json()["status"] == "ok"
        assert (await client.get("/readyz")).status_code == 200
        pop.status = "draining"
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/healthz")).status_code == 200
        pop.status = "full"
        for left_out, ready in (("", 503), ("?exclude=late", 503), ("?exclude=late&exclude=full", 200)):
            assert (await client.get(f"/readyz{left_out}")).status_code == ready


async def test_a_call_in_progress_when_the_server_stops() -> None:
    pop = FakePop()
    listener = server.bind(pop.config.http)
    task = asyncio.create_task(pop_http.serve(pop, listener))
    await pop.serving.wait()
    async with connect(f"ws://127.0.0.1:{listener.getsockname()[1]}/v1/realtime", proxy=None) as socket:
        await socket.recv()
        task.cancel()
        await socket.wait_closed()
        assert socket.close_code == 1012
    with pytest.raises(asyncio.CancelledError):
        await task
    assert pop.live == 0


async def test_agents_are_listed_as_models_to_those_who_may_call_them() -> None:
    pop = keyed()
    pop.lacking["clinic"] = "agent clinic needs a model"
    async with serving(pop) as address:

        async def models(key: str) -> list[Model]:
            openai = AsyncOpenAI(api_key=key, base_url=f"http://{address}/v1", max_retries=0)
            return [model async for model in openai.models.list()]

        secret = await AsyncOpenAI(
            api_key="sk-acme", base_url=f"http://{address}/v1", max_retries=0
        ).realtime.client_secrets.create(session={"type": "realtime", "model": "clinic"})
        listed = await models("sk-acme")
        assert [model.id for model in listed] == ["front-desk", "clinic"]
        assert listed[0].owned_by == "voicepipe"
        assert listed[0].model_extra == {"voice": "en-us", "language": "en"}
        assert listed[1].model_extra == {"voice": "en-us", "language": "en", "lacks": "agent clinic needs a model"}
        assert [model.id for model in await models("sk-clinic")] == ["clinic"]
        assert [model.id for model in await models(secret.value)] == ["clinic"]
        with pytest.raises(AuthenticationError):
            await models("sk-wrong")


async def test_one_agent_is_a_model_to_those_who_may_call_it() -> None:
    async with serving(keyed()) as address:
        acme, clinic = (
            AsyncOpenAI(api_key=key, base_url=f"http://{address}/v1", max_retries=0) for key in ("sk-acme", "sk-clinic")
        )
        assert (await acme.models.retrieve("front-desk")) in [model async for model in acme.models.list()]
        assert (await clinic.models.retrieve("clinic")).id == "clinic"
        for client, name in ((clinic, "front-desk"), (acme, "gpt-realtime")):
            with pytest.raises(NotFoundError) as caught:
                await client.models.retrieve(name)
            assert caught.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/nothing"), ("POST", "/v1/models"), ("GET", "/v1/realtime/client_secrets"), ("PUT", "/v1/a/b/c")],
)
async def test_what_the_api_has_not(method: str, path: str) -> None:
    async with requests(FakePop()) as client:
        answer = await client.request(method, path)
        assert answer.status_code == 404
        assert answer.json()["error"] == {
            "type": "invalid_request_error", "code": "not_found", "param": None,
            "message": f"There is no {method} {path}: correct the address.",
        }  # fmt: skip
        assert (await client.get("/nothing")).text == "Not Found", "a page that there is not"


async def test_a_socket_where_there_is_none() -> None:
    async with serving(FakePop()) as address:
        assert (await refused(address, "/nothing"))[:2] == (404, "not_found")


async def test_voices_are_listed_with_their_languages() -> None:
    async with requests(keyed()) as client:
        assert (await client.get("/v1/voices")).status_code == 401
        answer = await client.get("/v1/voices", headers=bearer("sk-acme"))
        data = [{"id": "en-us", "language": "en-us"}, {"id": "de", "language": "de"}]
        assert answer.json() == {"object": "list", "data": data}


async def test_a_post_that_is_broken_off_is_no_error_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    """Anybody can break off a hundred a second; each wrote two tracebacks into the log."""
    async with serving(FakePop()) as address:
        host, _, port = address.partition(":")
        for _ in range(10):
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(
                b"POST /v1/realtime/client_secrets HTTP/1.1\r\nHost: %b\r\nContent-Length: 100\r\n\r\n{"
                % address.encode()
            )
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.close()
        await until(lambda: "closed before all of the body had come" in caplog.text)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
