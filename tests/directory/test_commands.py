"""The commands of pops/README.md, "Several PoPs", as they are written there: NATS, a directory, two PoPs."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import websockets

from latency_probes.own_server import started
from tests.directory.keys import make_keys, needs_openssl
from tests.directory.nats_server import PERMISSIONS, free_port, nats_server, needs_nats

pytestmark = [needs_nats, needs_openssl, pytest.mark.e2e]
DIRECTORY = """
[directory]
key = "directory.pem"
place = [50.1, 8.7]

[bus]
servers = ["{bus}"]
user = "directory"
password_env = "DIRECTORY_BUS"

[[tenants]]
name = "acme"
key_env = "ACME_KEY"
"""
POP = """
[pop]
id = "{name}"
region = "{name}"
slots = 2

[fleet]
keys = ["directory.pub.pem"]
place = [50.1, 8.7]
websocket_url = "ws://127.0.0.1:{port}/v1/realtime"

[bus]
servers = ["{bus}"]
user = "{user}"
password_env = "FRA_BUS"
"""
SECRETS = {"ACME_KEY": "acme-key", "DIRECTORY_BUS": "directory-secret", "FRA_BUS": "fra-secret"}


@contextmanager
def command(folder: Path, name: str, *args: str) -> Iterator[str]:
    """One that serves; where it answers."""
    scripted = folder / "scripted.toml"
    scripted.write_text('[engines]\nasr = "scripted"\nllm = "scripted"\ntts = "scripted"\n')
    with started((sys.executable, "-m", "voicepipe", name, *args), {**os.environ, **SECRETS}) as child:
        yield child.url


async def test_a_caller_asks_the_directory_and_calls_the_pop(tmp_path: Path) -> None:
    await asyncio.to_thread(make_keys, tmp_path)
    port = free_port()
    with ExitStack() as stack:
        bus = stack.enter_context(nats_server(tmp_path, PERMISSIONS)).url
        (directory := tmp_path / "directory.toml").write_text(DIRECTORY.format(bus=bus))
        (fra := tmp_path / "fra.toml").write_text(POP.format(name="fra", port=port, bus=bus, user="fra"))
        url = stack.enter_context(command(tmp_path, "directory", "--config", str(directory), "--port", "0"))
        scripted = str(tmp_path / "scripted.toml")
        stack.enter_context(command(tmp_path, "pop", "--config", scripted, "--pop", str(fra), "--port", str(port)))
        async with httpx.AsyncClient(base_url=url, headers={"Authorization": "Bearer acme-key"}) as client:
            async with asyncio.timeout(60):
                while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110  # Until the PoP is heard of.
                    await asyncio.sleep(0.05)
            candidate = (await client.post("/v1/calls")).json()["candidates"][0]
            assert candidate["pop"] == "fra"
            async with websockets.connect(f"{candidate['url']}?token={candidate['token']}") as call:
                assert json.loads(await call.recv())["type"] == "session.created"
