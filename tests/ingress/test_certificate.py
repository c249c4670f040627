"""A certificate is read again when its files change, and connections that go on keep theirs."""

import asyncio
import hashlib
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from tests.support.waiting import until
from voicepipe.base.errors import ConfigError
from voicepipe.config import Config, HttpConfig
from voicepipe.config.rereads import Rereads
from voicepipe.ingress import certificate, server
from voicepipe.serving import lan


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "EVERY_S", 0.02)


def pair(folder: Path, name: str) -> tuple[bytes, bytes]:
    """A certificate and its key."""
    text = lan.certificate(folder / f"{name}.pem", {"127.0.0.1"}).read_text()
    cut = text.index("-----BEGIN PRIVATE KEY-----")
    return text[:cut].encode(), text[cut:].encode()


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def fingerprint(writer: asyncio.StreamWriter) -> str:
    return hashlib.sha256(writer.get_extra_info("ssl_object").getpeercert(binary_form=True)).hexdigest()


def of(cert: bytes) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(cert.decode())).hexdigest()


class Site:
    def __init__(self, folder: Path, port: int, rereads: Rereads[Config]) -> None:
        self.cert, self.key, self.port, self.rereads = folder / "cert.pem", folder / "key.pem", port, rereads

    def write(self, cert: bytes, key: bytes) -> None:
        """As a renewal does: new files in the places of the old ones, one after the other."""
        for path, content in ((self.cert, cert), (self.key, key)):
            beside = path.with_suffix(".new")
            beside.write_bytes(content)
            beside.replace(path)

    async def opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=trusting)

    async def served(self) -> str:
        """The fingerprint that a new connection sees."""
        _, writer = await self.opened()
        found = fingerprint(writer)
        writer.close()
        return found

    async def serves(self, cert: bytes) -> None:
        """Returns once new connections get this certificate. Raises TimeoutError."""
        async with asyncio.timeout(60):
            while await self.served() != of(cert):
                pass


@asynccontextmanager
async def site(folder: Path, first: tuple[bytes, bytes]) -> AsyncIterator[Site]:
    rereads = Rereads[Config]()
    http = HttpConfig(port=0, cert=str(folder / "cert.pem"), key=str(folder / "key.pem"))
    listener = server.bind(http)
    made = Site(folder, listener.getsockname()[1], rereads)
    await asyncio.to_thread(made.write, *first)
    ready = asyncio.Event()
    task = asyncio.create_task(server.serve(answer, listener, http, 100, 1000, ready, rereads))
    await ready.wait()
    yield made
    task.cancel()
    await asyncio.wait({task})


async def asks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return await reader.readuntil(b"\r\n\r\n")


async def test_a_renewed_certificate_is_served_to_new_connections(tmp_path: Path) -> None:
    old, new = await asyncio.to_thread(lambda: [pair(tmp_path, name) for name in ("old", "new")])
    async with site(tmp_path, old) as made:
        kept = await made.opened()
        assert fingerprint(kept[1]) == of(old[0])
        await asyncio.to_thread(made.write, *new)
        await made.serves(new[0])
        assert b" 204 " in await asks(*kept), "the old connection lives on"
        assert made.rereads.warning == ""
        kept[1].close()


async def test_while_the_files_do_not_belong_together_the_last_pair_is_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = await asyncio.to_thread(lambda: [pair(tmp_path, name) for name in ("old", "new")])
    async with site(tmp_path, old) as made:
        await asyncio.to_thread(made.cert.write_bytes, new[0])
        await until(lambda: "http.cert and http.key cannot be used" in made.rereads.warning)
        assert await made.served() == of(old[0])
        await asyncio.sleep(0.1)
        assert len([line for line in caplog.messages if "served on" in line]) == 1, "told once, not at each look"
        await asyncio.to_thread(made.key.unlink)
        await asyncio.sleep(0.1)
        assert await made.served() == of(old[0])
        await asyncio.to_thread(made.key.write_bytes, new[1])
        await until(lambda: not made.rereads.warning)
        assert await made.served() == of(new[0])


async def test_other_files_are_used_when_the_configuration_names_them(tmp_path: Path) -> None:
    old, new = await asyncio.to_thread(lambda: [pair(tmp_path, name) for name in ("old", "new")])
    async with site(tmp_path, old) as made:
        other = str(tmp_path / "new.pem")
        use = await asyncio.to_thread(made.rereads.read, Config(http=HttpConfig(cert=other, key=other)))
        assert await made.served() == of(old[0]), "what was read is not used yet"
        use()
        assert await made.served() == of(new[0])
        with pytest.raises(ConfigError, match="cannot be used"):
            await asyncio.to_thread(made.rereads.read, Config(http=HttpConfig(cert="/nowhere", key=other)))
        await asyncio.to_thread(shutil.copy, tmp_path / "old.pem", other)
        await made.serves(old[0])
