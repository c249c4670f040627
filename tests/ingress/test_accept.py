"""Connections are taken, refused, or wait."""

import errno
from typing import Any

import httpx
import pytest

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.test_connection import ended, eventually, raw
from voicepipe.ingress import accept
from voicepipe.ingress.visits import Visits

pytestmark = pytest.mark.slow


async def test_requests_without_end_are_refused_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with serving(FakePop()) as address:
        async with raw(address, request * 2000) as streams:
            said = await ended(streams)
        assert b"HTTP/1.1 429 Too Many Requests" in said and b"too_many_requests" in said
        assert said.count(b" 200 OK") < 500
        async with raw(address, request + b"GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\n\r\n",
                       source="127.0.0.10") as streams:  # fmt: skip
            assert (await ended(streams)).count(b" 200 OK") == 2
    assert [line for line in caplog.messages if "127.0.0.9" in line] == [
        "requests from 127.0.0.9 are refused: too many"
    ]


async def test_without_descriptors_callers_wait(
    monkeypatch: pytest.MonkeyPatch, visits: list[Visits], caplog: pytest.LogCaptureFixture
) -> None:
    failures = 0
    original = accept._taken

    def taken(listener: Any) -> Any:
        nonlocal failures
        if failures:
            failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return original(listener)

    monkeypatch.setattr(accept, "_taken", taken)
    async with serving(FakePop()) as address, raw(address) as idle:
        await eventually(lambda: bool(visits[0]))
        failures = 3
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"http://{address}/healthz")).status_code == 200
        assert await ended(idle) == b"", "a descriptor was won back from whoever waited"
    assert not failures and caplog.text.count("no connection can be taken (Too many open files)") == 3
