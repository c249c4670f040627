"""A failed call says at which step it failed."""

import socket
import ssl

import httpx
import pytest

from latency_probes.failed_call import code_of, refused, unreachable
from latency_probes.via import first_of
from voicepipe.base.errors import ProbeError


@pytest.mark.parametrize(
    ("cause", "step"),
    [
        (socket.gaierror(-2, "Name or service not known"), "resolve"),
        (ssl.SSLCertVerificationError("self-signed certificate"), "tls"),
        (ConnectionRefusedError(), "connect"),
        (TimeoutError(), "connect"),
    ],
)
def test_the_step_is_known_by_the_systems_own_error(cause: OSError, step: str) -> None:
    assert unreachable("http://x", cause).step == step
    wrapped = httpx.ConnectError("All connection attempts failed")
    wrapped.__cause__ = RuntimeError()
    wrapped.__cause__.__context__ = cause
    assert unreachable("http://x", wrapped).step == step, "as HTTP clients wrap it"


async def test_a_name_is_told_apart_also_through_an_http_client() -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.ConnectError) as caught:
            await client.get("http://nowhere.invalid")
    assert unreachable("http://nowhere.invalid", caught.value).step == "resolve"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"error": {"code": "engine_down"}}', "engine_down"),
        (b'{"error": {"code": "<script>"}}', ""),
        (b'{"error": {"code": "%s"}}' % (b"x" * 50), ""),
        (b"no JSON", ""),
        (b'{"error": 1}', ""),
        (None, ""),
    ],
)
def test_a_refusal_has_the_servers_code(body: bytes | None, code: str) -> None:
    assert code_of(body) == code
    assert refused("http://x", 503, body).why == (code or "http_503")


def test_a_call_by_a_directory_fails_as_at_the_first_pop() -> None:
    tried = {"fra1": refused("http://x", 503, b'{"error": {"code": "pop_full"}}'), "lhr1": ProbeError("x")}
    failed = first_of(tried, "both failed")
    assert (failed.step, failed.why, failed.pop, str(failed)) == ("refused", "pop_full", "fra1", "both failed")
    assert first_of({"lhr1": ProbeError("x")}, "it failed").step == "connect"
