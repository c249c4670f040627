"""A directory that has heard of PoPs, as processes of their own on this machine."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from latency_probes.components import children
from latency_probes.components.children import ServingChild
from latency_probes.components.directory import simulated
from latency_probes.components.directory.host import Hosted
from voicepipe.base.environment import made_up
from voicepipe.base.errors import ConfigError
from voicepipe.base.places import Place
from voicepipe.config import HttpConfig
from voicepipe.config.fleet_config import BusConfig
from voicepipe.directory.nats_bus import NatsBus
from voicepipe.serving.runtime import free_port

KEY_ENV, OPERATOR_ENV = "VOICEPIPE_BENCH_KEY", "VOICEPIPE_BENCH_OPERATOR_KEY"
HERE = Place(50.1, 8.7)
"""Where the directory stands."""
HEARD_S = 30.0
IN_MEMORY = "a bus in memory, within the directory's process (nats-server is not installed)"

DIRECTORY = """
[directory]
key = "directory.pem"
place = [{place.latitude}, {place.longitude}]
[http]
port = {port}
operator_key_env = "{operator}"
[bus]
servers = [{servers}]
[[tenants]]
name = "bench"
key_env = "{key}"
"""
POP = """
[pop]
id = "{name}"
region = "{name}"
slots = {slots}
budget_ms = {budget_ms}
agents = "{agents}"
default_agent = "{default}"
[http]
port = {port}
[fleet]
keys = ["directory.pub.pem"]
place = [{place.latitude}, {place.longitude}]
url = "http://127.0.0.1:{port}"
[bus]
servers = [{servers}]
[[tenants]]
name = "bench"
key_env = "{key}"
{engines}
"""


class Fleet(msgspec.Struct, frozen=True):
    """What runs."""

    url: str
    """Of the directory."""
    pid: int
    """Of the directory."""
    bus: str
    """What the PoPs and the directory speak by."""
    key: str
    """The tenant's, at the directory and at every PoP."""
    pops: dict[str, str]
    """Where each real PoP answers."""


class PopKind(msgspec.Struct, frozen=True):
    """What the PoPs of a bench are like."""

    engines: str
    """The tables of their engines, in TOML."""
    agents: dict[str, str]
    """Texts of the agents' files, the default one first."""
    slots: int = 36
    budget_ms: int = 300


@asynccontextmanager
async def running(
    folder: Path, places: dict[str, Place], kind: PopKind | None = None, simulated_pops: int = 0
) -> AsyncIterator[Fleet]:
    """A directory and its PoPs, of which it has heard. `folder` is for their files. One PoP has a process of its own,
    several share one; `simulated_pops` only report. Raises ConfigError: something does not start."""
    key, url = made_up(KEY_ENV), ""
    made_up(OPERATOR_ENV)
    _write_keys(folder)
    async with AsyncExitStack() as stack:
        if nats := _nats():
            url = await stack.enter_async_context(_served_by(nats))
        pops = {name: free_port(HttpConfig(port=0)) for name in places}
        files = [_pop_file(folder, name, places[name], port, url, kind) for name, port in pops.items() if kind]
        directory = _directory_file(folder, url)
        served = await stack.enter_async_context(_processes(directory, files, simulated_pops, url))
        fleet = Fleet(served.url, served.pid, nats and "NATS" or IN_MEMORY, key,
                      {name: f"http://127.0.0.1:{port}" for name, port in pops.items()})  # fmt: skip
        await _heard(fleet, len(pops) + simulated_pops)
        yield fleet


@asynccontextmanager
async def _processes(
    directory: Path, pops: Sequence[Path], simulated_pops: int, bus: str
) -> AsyncIterator[ServingChild]:
    """The directory's."""
    async with AsyncExitStack() as stack:
        if not bus:
            hosted = Hosted(tuple(map(str, pops)), simulated_pops, str(directory))
            yield await stack.enter_async_context(_hosting(hosted))
            return
        child = children.serving("-m", "voicepipe", "directory", "--config", str(directory))
        served = await stack.enter_async_context(child)
        if len(pops) == 1:
            await stack.enter_async_context(children.serving("-m", "voicepipe", "pop", "--config", str(pops[0])))
        elif pops:
            await stack.enter_async_context(_hosting(Hosted(tuple(map(str, pops)), bus=bus)))
        if simulated_pops:
            await stack.enter_async_context(_reporting(bus, simulated_pops))
        yield served


def _hosting(hosted: Hosted) -> Any:
    return children.serving("-m", "latency_probes.components.directory.host", msgspec.json.encode(hosted).decode())


@asynccontextmanager
async def _reporting(url: str, pops: int) -> AsyncIterator[None]:
    """They report from this process."""
    async with NatsBus.connected(BusConfig(servers=(url,))) as bus:
        task = asyncio.create_task(simulated.report(bus, pops))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _nats() -> str | None:
    return shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")


@asynccontextmanager
async def _served_by(program: str) -> AsyncIterator[str]:
    """NATS, on a free port of this machine."""
    port = free_port(HttpConfig(port=0))
    server = await asyncio.create_subprocess_exec(
        program, "-a", "127.0.0.1", "-p", str(port),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield f"nats://127.0.0.1:{port}"
    finally:
        await children.ended(server)


async def _heard(fleet: Fleet, pops: int) -> None:
    """Until the directory has heard of all PoPs that they take calls. Raises ConfigError."""
    deadline, heard = time.monotonic() + HEARD_S, -1
    async with httpx.AsyncClient(base_url=fleet.url, trust_env=False) as client:
        while heard < pops:
            if time.monotonic() > deadline:
                raise ConfigError(f"The directory has heard of {heard} PoPs within {HEARD_S:.0f} s, and not of {pops}.")
            await asyncio.sleep(0.1)
            heard = (await client.get("/healthz")).json()["pops"]


def _write_keys(folder: Path) -> None:
    key = Ed25519PrivateKey.generate()
    (folder / "directory.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "directory.pub.pem").write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def _directory_file(folder: Path, bus: str) -> Path:
    file, port = folder / "directory.toml", free_port(HttpConfig(port=0))
    servers = f'"{bus}"' if bus else ""
    file.write_text(DIRECTORY.format(place=HERE, port=port, operator=OPERATOR_ENV, key=KEY_ENV, servers=servers))
    return file


def _pop_file(folder: Path, name: str, place: Place, port: int, bus: str, kind: PopKind) -> Path:
    agents = folder / "agents"
    agents.mkdir(exist_ok=True)
    for agent, text in kind.agents.items():
        (agents / f"{agent}.toml").write_text(text)
    file = folder / f"{name}.toml"
    file.write_text(
        POP.format(
            name=name, slots=kind.slots, budget_ms=kind.budget_ms, agents=agents, default=next(iter(kind.agents)),
            port=port, place=place, servers=f'"{bus}"' if bus else "", key=KEY_ENV, engines=kind.engines,
        )
    )  # fmt: skip
    return file
