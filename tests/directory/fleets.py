"""A directory that serves, and PoPs that answer, in one process; their engines are scripted."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe import config as configuration
from voicepipe.config import Config, HttpConfig
from voicepipe.config.credentials import OperatorKeys
from voicepipe.config.directory_config import DirectoryConfig, DirectorySection, DirectoryTenant
from voicepipe.directory.bus import Bus, MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.directory.editions.directory_editions import DirectoryEditions
from voicepipe.directory.known_pops import KnownPops
from voicepipe.directory.server.call_placement import DirectoryRules
from voicepipe.directory.server.directory_http import app, reaching_pops
from voicepipe.directory.server.relay import MESSAGE_BYTES
from voicepipe.directory.signed_keys import SignedKeys
from voicepipe.directory.tokens import Signer, key_id
from voicepipe.ingress import server
from voicepipe.pop.pop import Pop
from voicepipe.pop.running import member

KEY = Ed25519PrivateKey.generate()
SIGNER = Signer(key_id(KEY.public_key()), KEY)
LONG_S = 60.0
FRANKFURT, LONDON, VIRGINIA = (50.1, 8.7), (51.5, -0.1), (39.0, -77.5)
ACME, CLINIC = DirectoryTenant(name="acme", key_env="A"), DirectoryTenant(name="clinic", key_env="B", zone="eu")
OWNERS = {"k-acme": ACME, "k-clinic": CLINIC}
OPERATOR = "k-operator"


def public_key(folder: Path) -> str:
    """The path of the directory's public key, which is written there."""
    file = folder / "directory.pub.pem"
    file.write_bytes(KEY.public_key().public_bytes(serialization.Encoding.PEM,
                                                   serialization.PublicFormat.SubjectPublicKeyInfo))  # fmt: skip
    return str(file)


def settings(name: str, public: str, place: tuple[float, float], **changes: Any) -> Config:
    """Of a PoP on a free port; its engines are scripted."""
    port = free_port()
    tables: dict[str, Any] = {
        "pop": {
            "id": name,
            "region": name,
            "slots": 4,
            "drain_ms": 0,
            "agents": str(configuration.shipped_files() / "configs" / "agents"),
        },
        "http": {"port": port},
        "fleet": {"keys": [public], "place": list(place), "url": f"http://127.0.0.1:{port}"},
        "engines": {"asr": "scripted", "llm": "scripted", "tts": "scripted"},
    }
    for table, keys in changes.items():
        tables[table] = {**tables.get(table, {}), **keys} if isinstance(keys, Mapping) else keys
    return configuration.parse(tables)


@asynccontextmanager
async def fleet(*configs: Config, bus: Bus | None = None) -> AsyncIterator[tuple[Directory, list[Pop]]]:
    """They run, and the directory has heard of all that they are ready."""
    bus = bus or MemoryBus()
    directory = Directory(bus, SIGNER, known=KnownPops())
    async with asyncio.TaskGroup() as group:
        hearing = group.create_task(directory.run())
        async with AsyncExitStack() as stack:
            pops = [await stack.enter_async_context(member(config, bus)) for config in configs]
            await until(lambda: sum(seen.condition.status == "ok" for seen in directory.pops()) == len(configs), LONG_S)
            yield directory, pops
        hearing.cancel()


async def obeys(pop: Pop) -> None:
    """As its process does: it drains once it is ordered to."""
    await asyncio.wait_for(pop.dismissed(), LONG_S)
    await pop.drain()


@dataclass(slots=True)
class Served:
    """A directory over HTTP."""

    url: str
    directory: Directory
    signed_keys: SignedKeys

    def client(self, key: str = "k-acme") -> httpx.AsyncClient:
        """Of somebody who holds this key."""
        return httpx.AsyncClient(base_url=self.url, headers={"Authorization": f"Bearer {key}"}, timeout=LONG_S)


@asynccontextmanager
async def served(
    directory: Directory,
    bus: Bus,
    owners: Mapping[str, DirectoryTenant] = OWNERS,
    editions: DirectoryEditions | None = None,
    operator: str = OPERATOR,
    **tables: Any,
) -> AsyncIterator[Served]:
    """`directory` answers, on a free port. `tables`: others of its configuration."""
    config = DirectoryConfig(directory=DirectorySection(place=FRANKFURT), http=HttpConfig(port=0),
                             tenants=tuple(owners.values()), **tables)  # fmt: skip
    listener = server.bind(config.http)
    signed_keys = SignedKeys(bus, SIGNER, {SIGNER.key_id: KEY.public_key()})
    rules, ready = DirectoryRules(config, owners), asyncio.Event()
    async with reaching_pops() as client, asyncio.TaskGroup() as group:
        application = await asyncio.to_thread(
            app, rules, directory, signed_keys, OperatorKeys(operator), client, editions=editions
        )
        jobs = [
            group.create_task(signed_keys.run()),
            group.create_task(directory.call_claims.run()),
            group.create_task(server.serve(application, listener, config.http, 1000, MESSAGE_BYTES, ready)),
        ]
        await ready.wait()
        yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", directory, signed_keys)
        for job in jobs:
            job.cancel()
