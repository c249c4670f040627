"""A PoP whose files change under its calls: certificates, keys, agents and the log; no call notices."""

import asyncio
import hashlib
import json
import os
import signal
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from latency_probes.own_server import Started, started
from tests.records.typist import Typist
from tests.support.waiting import until
from voicepipe.serving import lan

pytestmark = pytest.mark.e2e
CONFIG = """
[pop]
agents = "agents"
slots = {slots}
budget_ms = 600000
loop_lag_ms = 60000

[http]
cert = "pop.pem"
key = "pop.pem"
operator_key_env = "{operator}"

[log]
level = "debug"
format = "json"

[engines]
vad = "scripted"
asr = "scripted"
llm = "scripted"
tts = "scripted"

[[tenants]]
name = "acme"
key_env = "{key}"
"""
SECRETS = {"FIRST": "key-one", "SECOND": "key-two", "OPERATOR_1": "operator-one", "OPERATOR_2": "operator-two"}
AGENT = 'name = "front-desk"\ngreeting = "Hello."\n'


class Site:
    """A PoP and its folder. What it serves is asked by a client that trusts any certificate."""

    def __init__(self, folder: Path, pop: Started) -> None:
        self.folder, self.pop = folder, pop
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE

    def call(self, key: str, model: str = "") -> Typist:
        typist = Typist(self.pop.url, SECRETS[key], model)
        typist.tls = self.tls
        return typist

    def configure(self, **changes: Any) -> None:
        configure(self.folder, **changes)

    def reload(self) -> None:
        os.kill(self.pop.pid, signal.SIGHUP)

    async def served(self) -> str:
        """The fingerprint of the certificate that a new connection gets."""
        port = int(self.pop.url.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=self.tls)
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return hashlib.sha256(certificate).hexdigest()

    async def status(self, path: str, key: str) -> int:
        def asked() -> int:
            request = urllib.request.Request(self.pop.url + path, headers={"Authorization": f"Bearer {SECRETS[key]}"})
            try:
                with urllib.request.urlopen(request, context=self.tls) as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                return error.code

        return await asyncio.to_thread(asked)

    async def warning(self) -> str:
        def asked() -> str:
            with urllib.request.urlopen(f"{self.pop.url}/healthz", context=self.tls) as answer:
                return str(json.load(answer).get("warning", ""))

        return await asyncio.to_thread(asked)

    def told(self) -> list[dict[str, str]]:
        """The log. Raises ValueError: a line of it is no JSON."""
        lines = self.pop.log.read_text().splitlines()
        return [json.loads(line) for line in lines if " answers at " not in line]

    def reloads(self) -> int:
        return sum(line["message"].startswith("the files were read again") for line in self.told())


def configure(folder: Path, slots: int = 20, operator: str = "OPERATOR_1", key: str = "FIRST") -> None:
    (folder / "voicepipe.toml").write_text(CONFIG.format(slots=slots, operator=operator, key=key))


def certify(folder: Path, name: str) -> str:
    """A new certificate takes the place of the PoP's; returns its fingerprint."""
    made = lan.certificate(folder / f"{name}.pem", {"127.0.0.1"})
    made.replace(folder / "pop.pem")
    text = (folder / "pop.pem").read_text()
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(text[: text.index("-----BEGIN PRIVATE")])).hexdigest()


async def becomes(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    """`await condition()` holds. Raises TimeoutError: not within `seconds`."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[tuple[Site, str]]:
    """With the fingerprint of its first certificate."""
    first = await asyncio.to_thread(certify, folder, "first")
    (folder / "agents").mkdir()
    (folder / "agents" / "front-desk.toml").write_text(AGENT)
    configure(folder)
    command = (sys.executable, "-m", "voicepipe", "pop", "--port", "0", "--config", str(folder / "voicepipe.toml"))
    with ExitStack() as stack:
        pop = await asyncio.to_thread(stack.enter_context, started(command, {**os.environ, **SECRETS}))
        yield Site(folder, pop), first


async def test_a_renewed_certificate_is_served_and_calls_go_on(tmp_path: Path) -> None:
    async with site(tmp_path) as (pop, first), pop.call("FIRST") as call:
        assert await pop.served() == first
        second = await asyncio.to_thread(certify, tmp_path, "second")

        async def is_served() -> bool:
            return await pop.served() == second

        await becomes(is_served)
        await call.asks("Are you there?")
        async with pop.call("FIRST") as other:
            await other.asks("And now?")
        assert await pop.warning() == ""


async def test_keys_agents_and_the_log_change_and_a_call_goes_on(tmp_path: Path) -> None:
    async with site(tmp_path) as (pop, _), pop.call("FIRST") as call:
        assert await pop.status("/v1/models", "FIRST") == 200 and await pop.status("/v1/models", "SECOND") == 401
        assert await pop.status("/metrics", "OPERATOR_2") == 401
        (tmp_path / "agents" / "clinic.toml").write_text(AGENT.replace("front-desk", "clinic"))
        pop.configure(key="SECOND", operator="OPERATOR_2", slots=7)
        pop.reload()

        async def is_refused() -> bool:
            return await pop.status("/v1/models", "FIRST") == 401

        await becomes(is_refused)
        assert await pop.status("/v1/models", "SECOND") == 200 == await pop.status("/v1/models/clinic", "SECOND")
        assert await pop.status("/metrics", "OPERATOR_2") == 200 and await pop.status("/metrics", "OPERATOR_1") == 401
        await call.asks("Are you there?")
        async with pop.call("SECOND") as other:
            await other.asks("And now?")
        said = [line["message"] for line in await asyncio.to_thread(pop.told)]
        assert "pop.slots changed: takes effect after a restart" in said


async def test_files_with_an_error_change_nothing(tmp_path: Path) -> None:
    async with site(tmp_path) as (pop, first), pop.call("FIRST") as call:
        pop.configure(key="SECOND")
        for path, text in (
            ("voicepipe.toml", CONFIG.format(slots='"many"', operator="OPERATOR_1", key="SECOND")),
            ("pop.pem", "no certificate"),
            ("agents/front-desk.toml", "name = "),
        ):
            file = tmp_path / path
            before = await asyncio.to_thread(file.read_bytes)
            await asyncio.to_thread(file.write_text, text)
            pop.reload()

            async def warns(of: str = "the files are not used") -> bool:
                return of in await pop.warning()

            await becomes(warns)
            assert await pop.status("/v1/models", "FIRST") == 200 and await pop.status("/v1/models", "SECOND") == 401
            assert await pop.served() == first
            await call.asks(f"Are you there, {path}?")
            await asyncio.to_thread(file.write_bytes, before)
            pop.configure(key="FIRST")
            pop.reload()

            async def is_well() -> bool:
                return await pop.warning() == ""

            await becomes(is_well)
            pop.configure(key="SECOND")
        errors = [line["message"] for line in await asyncio.to_thread(pop.told) if line["level"] == "ERROR"]
        assert len([line for line in errors if "nothing has changed" in line]) >= 3
        assert any('pop.slots: cannot be "many"' in line for line in errors)


async def test_hundreds_of_signals_end_no_call(tmp_path: Path) -> None:
    async with site(tmp_path) as (pop, _), AsyncExitStack() as stack:
        calls = [await stack.enter_async_context(pop.call("FIRST")) for _ in range(4)]
        over = asyncio.Event()

        async def talks(call: Typist) -> None:
            turn = 0
            while not over.is_set() or turn < 3:
                await call.asks(f"turn {turn}")
                turn += 1

        talking = [asyncio.create_task(talks(call)) for call in calls]
        for number in range(200):
            pop.reload()
            await asyncio.sleep(0.02 if number % 10 else 0.2)
        over.set()
        await asyncio.gather(*talking)
        reloads = await asyncio.to_thread(pop.reloads)
        assert 10 < reloads <= 201
        pop.configure(key="SECOND")
        pop.reload()

        async def is_refused() -> bool:
            return await pop.status("/v1/models", "FIRST") == 401

        await becomes(is_refused)
        assert await pop.warning() == ""


async def test_each_line_of_the_log_is_json_and_names_its_call(tmp_path: Path) -> None:
    async with site(tmp_path) as (pop, _):
        async with pop.call("FIRST") as call:
            await call.asks("Are you there?")
        async with pop.call("FIRST", 'x"\nvoicepipe\r\n{}') as call:
            await call.asks("Are you there?")
        ended = partial(ends, pop)
        await until(ended)
        told = await asyncio.to_thread(pop.told)
        assert {line["pop"] for line in told} == {"local"}
        of_calls = [line for line in told if line["message"].startswith("rtc_")]
        assert len({line["call"] for line in of_calls}) == 2
        assert all(line["message"].startswith(line["call"]) for line in of_calls)
        assert [line for line in told if "no agent is called" in line["message"]]


def ends(pop: Site) -> bool:
    """Two calls are over."""
    return sum(": ended after " in line["message"] for line in pop.told()) == 2
