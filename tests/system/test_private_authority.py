"""A fleet whose certificates a private authority has signed, and whose secrets are files: NATS, a directory, a PoP, and
the commands that ask them. Each host's file names the authority, and the commands are given it."""

import asyncio
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import websockets

from latency_probes.own_server import Started, started
from tests.directory.keys import make_keys, needs_openssl
from tests.directory.nats_server import PERMISSIONS, nats_server, needs_nats
from tests.support.authority import Authority, ServerCertificate
from tests.support.ports import free_port
from tests.support.waiting import until

pytestmark = [needs_nats, needs_openssl, pytest.mark.e2e]
LONG_S = 60.0
NATS = 'tls {{ cert_file: "{cert}", key_file: "{key}" }}\n' + PERMISSIONS.replace("{", "{{").replace("}", "}}")
DIRECTORY = """
[directory]
key = "directory.pem"
[bus]
servers = ["{bus}"]
user = "directory"
password_file = "$CREDENTIALS_DIRECTORY/directory-bus"
[tls]
ca = "{ca}"
[http]
cert = "{cert}"
key = "{key}"
operator_key_file = "$CREDENTIALS_DIRECTORY/operator"
[[tenants]]
name = "acme"
key_file = "$CREDENTIALS_DIRECTORY/acme"
"""
POP = """
[pop]
id = "fra"
slots = 2
[fleet]
keys = ["directory.pub.pem"]
url = "https://127.0.0.1:{port}"
[bus]
servers = ["{bus}"]
user = "fra"
password_file = "secrets/fra-bus"
[tls]
ca = "{ca}"
[http]
cert = "{cert}"
key = "{key}"
[engines]
asr = "scripted"
llm = "scripted"
tts = "scripted"
"""
SECRETS = {"acme": "acme-key", "operator": "operator-key", "directory-bus": "directory-secret", "fra-bus": "fra-secret"}


class PrivateFleet:
    """The files of a fleet; `ca` is the authority that its hosts name, `authority` the one that has signed."""

    def __init__(self, folder: Path, ca: Path | None = None) -> None:
        self.folder = folder
        make_keys(folder)
        (secrets := folder / "secrets").mkdir()
        for name, secret in SECRETS.items():
            (secrets / name).write_text(f"{secret}\n")
        self.environment = {**os.environ, "CREDENTIALS_DIRECTORY": str(secrets)}
        self.authority = Authority(folder / "authority")
        self.ca = ca or self.authority.ca
        self.certified: ServerCertificate = self.authority.certified()
        self.port = free_port()

    def file(self, name: str, text: str, bus: str) -> str:
        its = {"cert": self.certified.cert, "key": self.certified.key, "ca": self.ca, "bus": bus, "port": self.port}
        (file := self.folder / name).write_text(text.format(**its))
        return str(file)

    @contextmanager
    def bus(self) -> Iterator[str]:
        certified = self.certified._asdict()
        with nats_server(self.folder, NATS.format(**certified)) as server:
            yield server.url.replace("nats:", "tls:")

    @contextmanager
    def directory(self, bus: str) -> Iterator[Started]:
        file = self.file("directory.toml", DIRECTORY, bus)
        with started((sys.executable, "-m", "voicepipe", "directory", "--config", file, "--port", "0"),
                     self.environment) as child:  # fmt: skip
            yield child

    @contextmanager
    def pop(self, bus: str) -> Iterator[Started]:
        file = self.file("fra.toml", POP, bus)
        with started((sys.executable, "-m", "voicepipe", "pop", "--config", file, "--port", str(self.port))) as child:
            yield child

    def command(self, *args: str) -> "subprocess.CompletedProcess[str]":
        return self._run("voicepipe", *args)

    def probed(self, *args: str) -> "subprocess.CompletedProcess[str]":
        return self._run("latency_probes", *args)

    def _run(self, module: str, *args: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run((sys.executable, "-m", module, *args), capture_output=True, text=True, check=False)


async def test_a_private_authority_is_trusted_where_it_is_named(tmp_path: Path) -> None:
    fleet = await asyncio.to_thread(PrivateFleet, tmp_path)
    trusting = ssl.create_default_context(cafile=fleet.authority.ca)
    with ExitStack() as stack:
        bus = stack.enter_context(fleet.bus())
        directory, pop = stack.enter_context(fleet.directory(bus)), stack.enter_context(fleet.pop(bus))
        headers = {"Authorization": "Bearer acme-key"}
        async with httpx.AsyncClient(base_url=directory.url, headers=headers, verify=trusting) as client:
            async with asyncio.timeout(LONG_S):
                while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110  # Until the PoP is heard of.
                    await asyncio.sleep(0.05)
            answer = await client.get("/v1/voices")
            assert answer.status_code == 200, f"the directory asks the PoP: {directory.log.read_text()}"
        url = f"{directory.url.replace('http', 'ws', 1)}/v1/realtime"
        async with websockets.connect(url, additional_headers=headers, ssl=trusting) as call:
            assert json.loads(await call.recv())["type"] == "session.created", "the directory relays to the PoP"
        where, key = ("--directory", directory.url), ("--key-file", str(tmp_path / "secrets" / "operator"))
        shown = await asyncio.to_thread(fleet.command, "pops", *where, *key, "--ca", str(fleet.ca))
        assert shown.returncode == 0 and "fra" in shown.stdout and "ok" in shown.stdout
        refused = await asyncio.to_thread(fleet.command, "pops", *where, *key)
        assert refused.returncode and "its certificate is not trusted here (" in refused.stderr
        assert "name the certificate of the authority that signed it as --ca FILE" in refused.stderr
        probed = await asyncio.to_thread(
            fleet.probed, pop.url, "--set", "finished", "--calls", "1", "--ca", str(fleet.ca)
        )
        assert probed.returncode in (0, 1), f"a call was placed: {probed.stderr}"
        unmeasured = await asyncio.to_thread(fleet.probed, pop.url, "--set", "finished", "--calls", "1")
        assert unmeasured.returncode == 2 and "give the certificate of the authority" in unmeasured.stderr
        drained = await asyncio.to_thread(fleet.command, "drain", "fra", *where, *key, "--ca", str(fleet.ca))
        assert drained.returncode == 0 and "fra takes no new calls" in drained.stdout
        assert "not trusted" not in directory.log.read_text() + pop.log.read_text()


async def test_a_directory_says_which_pop_it_does_not_trust(tmp_path: Path) -> None:
    """Another authority than the one that the directory names has signed the PoP's certificate."""
    fleet = await asyncio.to_thread(PrivateFleet, tmp_path)
    other = await asyncio.to_thread(Authority, tmp_path / "other", "another authority")
    trusting = ssl.create_default_context(cafile=fleet.authority.ca)
    with ExitStack() as stack:
        bus = stack.enter_context(fleet.bus())
        directory = stack.enter_context(fleet.directory(bus))
        fleet.certified = await asyncio.to_thread(other.certified)
        stack.enter_context(fleet.pop(bus))
        headers = {"Authorization": "Bearer acme-key"}
        async with httpx.AsyncClient(base_url=directory.url, headers=headers, verify=trusting) as client:
            async with asyncio.timeout(LONG_S):
                while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert (await client.get("/v1/voices")).status_code == 503
        said = "fra is not asked: its certificate is not trusted here (unable to get local issuer certificate)"
        assert said in directory.log.read_text()
        url = f"{directory.url.replace('http', 'ws', 1)}/v1/realtime"
        with pytest.raises(websockets.InvalidStatus):
            await websockets.connect(url, additional_headers=headers, ssl=trusting)
        assert "fra does not let a call in: its certificate is not trusted here (" in directory.log.read_text()


async def test_the_log_says_who_is_not_trusted(tmp_path: Path) -> None:
    """The hosts name another authority than the one that has signed."""
    other = await asyncio.to_thread(Authority, tmp_path / "other", "another authority")
    (folder := tmp_path / "fleet").mkdir()
    fleet = await asyncio.to_thread(PrivateFleet, folder, other.ca)
    with fleet.bus() as bus, fleet.pop(bus) as pop:
        said = "the bus (NATS): its certificate is not trusted here ("
        await until(lambda: said in pop.log.read_text(), LONG_S)
        assert "name the certificate of the authority that signed it as tls.ca" in pop.log.read_text()
