"""Three NATS servers with the configuration that comes with voicepipe: who may say what, also after one failed."""

import asyncio
import re
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.directory.nats_server import PROGRAM, needs_nats
from tests.support.paths import ROOT
from tests.support.ports import free_port

pytestmark = [needs_nats, pytest.mark.slow]

DEPLOY = ROOT / "pops" / "deploy"
TABLE = (ROOT / "pops" / "directory.md").read_text()
UP_S = 30.0


def made(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def certificates(folder: Path) -> None:
    """An authority, and a certificate for the servers, which are on this machine."""
    folder.mkdir()
    new = ("openssl", "req", "-x509", "-newkey", "ed25519", "-nodes")
    made(folder, *new, "-keyout", "ca.key", "-out", "fleet-ca.pem", "-subj", "/CN=fleet")
    made(folder, *new, "-CA", "fleet-ca.pem", "-CAkey", "ca.key", "-keyout", "privkey.pem", "-out", "fullchain.pem",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-addext", "basicConstraints=critical,CA:FALSE")  # fmt: skip


def written(folder: Path, name: str, **changes: str) -> None:
    """A file that comes with voicepipe, with other values of these keys."""
    text = (DEPLOY / name).read_text().replace("/etc/voicepipe/", f"{folder}/")
    for key, value in changes.items():
        text, count = re.subn(rf"^( *{key}: ).*$", rf"\g<1>{value}", text, count=1, flags=re.MULTILINE)
        assert count == 1, key
    (folder / name).write_text(text)


@dataclass
class Server:
    """One of the three."""

    process: "subprocess.Popen[bytes]"
    port: int
    monitor: int

    @property
    def routes(self) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/routez") as answer:
                return int(msgspec.json.decode(answer.read())["num_routes"])
        except OSError:
            return 0


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    """All three, which have found each other."""
    assert PROGRAM is not None
    certificates(tmp_path / "tls")
    clusters = [free_port() for _ in range(3)]
    started: list[Server] = []
    try:
        for number, cluster in enumerate(clusters):
            folder = tmp_path / f"nats-{number}"
            folder.mkdir()
            (folder / "tls").symlink_to(tmp_path / "tls")
            (folder / "fleet-ca.pem").symlink_to(tmp_path / "tls" / "fleet-ca.pem")
            port, monitor = free_port(), free_port()
            routes = ", ".join(f'"nats-route://127.0.0.1:{known}"' for known in clusters[:number])
            written(folder, "nats.conf", server_name=f'"nats-{number}"', listen=f'"127.0.0.1:{port}"',
                    http=f'"127.0.0.1:{monitor}"', routes=f"[{routes}]")  # fmt: skip
            text = (folder / "nats.conf").read_text()
            (folder / "nats.conf").write_text(text.replace('"0.0.0.0:6222"', f'"127.0.0.1:{cluster}"'))
            users = re.sub(r"\$(\w+)_PASSWORD", r'"secret-of-\1"', (DEPLOY / "nats-users.conf").read_text())
            (folder / "nats-users.conf").write_text(users)
            process = subprocess.Popen((PROGRAM, "-c", str(folder / "nats.conf")), stderr=subprocess.DEVNULL)
            started.append(Server(process, port, monitor))
        wait(lambda: all(server.routes >= 2 for server in started), "the servers to find each other")
        yield started
    finally:
        for server in started:
            server.process.kill()
            server.process.wait()


def wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + UP_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


async def connected(server: Server, tls: Path, user: str, password: str = "") -> Client:
    context = ssl.create_default_context(cafile=str(tls / "fleet-ca.pem"))
    return await nats.connect(
        f"tls://127.0.0.1:{server.port}", tls=context, user=user, allow_reconnect=False,
        password=password or f"secret-of-{user.upper()}", connect_timeout=10,
    )  # fmt: skip


async def test_three_servers_carry_what_each_may_say_and_go_on_as_two(servers: list[Server], tmp_path: Path) -> None:
    tls = tmp_path / "tls"
    with pytest.raises(Exception, match="(?i)authorization"):
        await connected(servers[0], tls, "fra1", "guessed")

    directory = await connected(servers[1], tls, "directory")
    heard: list[str] = []

    async def hears(message: Msg) -> None:
        heard.append(message.subject)

    await directory.subscribe("vp.pop.>", cb=hears)
    await directory.flush()
    pop = await connected(servers[2], tls, "fra1")
    await pop.publish("vp.pop.iad1.report", b"")  # not its own
    await until_heard(pop, heard, "vp.pop.fra1.report")
    assert heard == ["vp.pop.fra1.report"]

    servers[0].process.kill()
    heard.clear()
    await until_heard(pop, heard, "vp.pop.fra1.bye")
    for client in (directory, pop):
        await client.close()


async def until_heard(pop: Client, heard: list[str], subject: str) -> None:
    """Said again and again: interest travels between servers a moment after it is told."""
    async with asyncio.timeout(UP_S):
        while subject not in heard:
            await pop.publish(subject, b"")
            await pop.flush()
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.3)
    heard[:] = sorted(set(heard))


def test_users_are_those_of_the_table() -> None:
    """Each row of the page: who, what it may publish, what it may subscribe to."""
    users = (DEPLOY / "nats-users.conf").read_text()
    for who, name in ((r"PoP `fra1`", "fra1"), ("directory", "directory")):
        row = re.search(rf"^ *\| {who} \| (.*) \| (.*) \|$", TABLE, re.MULTILINE)
        user = re.search(rf'user: "{name}".*?publish: (.*?)\n *subscribe: (.*?)\}}\}}', users, re.DOTALL)
        assert row and user
        for cell, setting in zip(row.groups(), user.groups(), strict=True):
            assert re.findall(r"`(.+?)`", cell) == re.findall(r'"(.+?)"', setting)
