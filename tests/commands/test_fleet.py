"""The commands of pops/directory.md, "With real processes", as they are written there: NATS, a directory, two PoPs."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest
import websockets

from latency_probes.own_server import Started, started
from tests.directory.keys import make_keys, needs_openssl
from tests.directory.nats_server import PERMISSIONS, nats_server, needs_nats
from tests.support.ports import free_port

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
url = "http://127.0.0.1:{port}"

[bus]
servers = ["{bus}"]
user = "{user}"
password_env = "FRA_BUS"
"""
SECRETS = {"ACME_KEY": "acme-key", "NEW_KEY": "new-key", "DIRECTORY_BUS": "directory-secret", "FRA_BUS": "fra-secret"}


@contextmanager
def command(folder: Path, name: str, *args: str) -> Iterator[Started]:
    """One that serves."""
    scripted = folder / "scripted.toml"
    scripted.write_text('[engines]\nasr = "scripted"\nllm = "scripted"\ntts = "scripted"\n')
    with started((sys.executable, "-m", "voicepipe", name, *args), {**os.environ, **SECRETS}) as child:
        yield child


@asynccontextmanager
async def fleet(folder: Path) -> AsyncIterator[tuple[Started, httpx.AsyncClient]]:
    """A directory that has heard of a PoP, and who asks it."""
    await asyncio.to_thread(make_keys, folder)
    port = free_port()
    with ExitStack() as stack:
        bus = stack.enter_context(nats_server(folder, PERMISSIONS)).url
        (file := folder / "directory.toml").write_text(DIRECTORY.format(bus=bus))
        (fra := folder / "fra.toml").write_text(POP.format(name="fra", port=port, bus=bus, user="fra"))
        directory = stack.enter_context(command(folder, "directory", "--config", str(file), "--port", "0"))
        scripted = str(folder / "scripted.toml")
        stack.enter_context(command(folder, "pop", "--config", scripted, "--pop", str(fra), "--port", str(port)))
        headers = {"Authorization": "Bearer acme-key"}
        async with httpx.AsyncClient(base_url=directory.url, headers=headers) as client:
            async with asyncio.timeout(60):
                while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110  # Until the PoP is heard of.
                    await asyncio.sleep(0.05)
            yield directory, client


async def test_a_caller_asks_the_directory_and_calls_the_pop(tmp_path: Path) -> None:
    async with fleet(tmp_path) as (_, client):
        candidate = (await client.post("/v1/calls")).json()["candidates"][0]
        assert candidate["pop"] == "fra"
        async with websockets.connect(f"{candidate['url']}?token={candidate['token']}") as call:
            assert json.loads(await call.recv())["type"] == "session.created"


async def test_a_directorys_keys_change_by_sighup_and_the_calls_that_it_relays_go_on(tmp_path: Path) -> None:
    async with fleet(tmp_path) as (directory, client):
        url, key = f"{directory.url.replace('http', 'ws', 1)}/v1/realtime", {"Authorization": "Bearer acme-key"}
        async with websockets.connect(url, additional_headers=key) as call:
            assert json.loads(await call.recv())["type"] == "session.created"
            file = tmp_path / "directory.toml"
            text = await asyncio.to_thread(file.read_text)
            changed = text.replace("ACME_KEY", "NEW_KEY").replace("50.1", "50.2")
            await asyncio.to_thread(file.write_text, changed)
            os.kill(directory.pid, signal.SIGHUP)
            async with asyncio.timeout(60):
                while (await client.get("/v1/regions")).status_code != 401:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            new = {"Authorization": "Bearer new-key"}
            assert (await client.post("/v1/calls", headers=new)).json()["candidates"][0]["pop"] == "fra"
            await call.send('{"type": "input_audio_buffer.clear"}')
            while json.loads(await call.recv())["type"] != "input_audio_buffer.cleared":
                pass
            assert (await client.get("/readyz")).json()["status"] == "ok"
        log = await asyncio.to_thread(directory.log.read_text)
        assert "directory.place changed: takes effect after a restart" in log and "changed: tenants" in log
        await asyncio.to_thread(file.write_text, changed.replace("NEW_KEY", "NO_SUCH_KEY"))
        os.kill(directory.pid, signal.SIGHUP)
        async with asyncio.timeout(60):
            while "warning" not in (health := (await client.get("/healthz")).json()):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert "the environment variable NO_SUCH_KEY is not set here" in health["warning"]
        assert (await client.get("/v1/regions", headers=new)).status_code == 200, "nothing has changed"


async def test_a_directory_that_is_stopped_lets_the_calls_end_that_it_relays(tmp_path: Path) -> None:
    async with fleet(tmp_path) as (directory, client):
        url, key = f"{directory.url.replace('http', 'ws', 1)}/v1/realtime", {"Authorization": "Bearer acme-key"}
        async with websockets.connect(url, additional_headers=key) as call:
            assert json.loads(await call.recv())["type"] == "session.created"
            os.kill(directory.pid, signal.SIGTERM)
            async with asyncio.timeout(60):
                while (health := (await client.get("/readyz")).json())["status"] != "draining":  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert health["relayed"] == 1
            with pytest.raises(websockets.InvalidStatus, match="503"):
                await websockets.connect(url, additional_headers=key)
            assert (await client.post("/v1/calls")).status_code == 200, "who calls a PoP directly does not need it"
            await call.send('{"type": "input_audio_buffer.clear"}')
            while json.loads(await call.recv())["type"] != "input_audio_buffer.cleared":
                pass
        async with asyncio.timeout(60):
            with pytest.raises(httpx.ConnectError):
                while await client.get("/readyz"):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
