"""A directory's HTTP API, in the process of the test."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import httpx
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.directory.reports import FRANKFURT, LONDON, VIRGINIA, report
from voicepipe.config.credentials import OperatorKeys
from voicepipe.config.directory_config import DirectoryConfig, DirectorySection, DirectoryTenant
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.directory.editions.directory_editions import DirectoryEditions
from voicepipe.directory.server.call_placement import DirectoryRules
from voicepipe.directory.server.directory_http import app
from voicepipe.directory.signed_keys import SignedKeys
from voicepipe.directory.tokens import Signer

KEY = Ed25519PrivateKey.generate()
ACME = DirectoryTenant(name="acme", key_env="ACME_KEY", agents=("front-desk",), slots=3)
CLINIC = DirectoryTenant(name="clinic", key_env="CLINIC_KEY", zone="eu")
CONFIG = DirectoryConfig(directory=DirectorySection(place=(50.1, 8.7)), tenants=(ACME, CLINIC))
OWNERS = {"k-acme": ACME, "k-clinic": CLINIC}


def told(pop: str, **changes: Any) -> BusMessage:
    return BusMessage(f"vp.pop.{pop}.report", msgspec.json.encode(report(**changes)))


def three_pops() -> Directory:
    made = Directory(MemoryBus(), Signer("k", KEY), Random(0))
    made.take(told("fra", place=FRANKFURT))
    made.take(told("lhr", place=LONDON, zone="uk", region="london"))
    made.take(told("iad", place=VIRGINIA, zone="us", agents={"front-desk": "de"}))
    return made


@asynccontextmanager
async def asking(
    directory: Directory,
    key: str = "k-acme",
    owners: Mapping[str, DirectoryTenant] = OWNERS,
    editions: DirectoryEditions | None = None,
) -> AsyncIterator[httpx.AsyncClient]:
    """A client with this key."""
    signed_keys = SignedKeys(MemoryBus(), Signer("k", KEY), {"k": KEY.public_key()})
    operator = OperatorKeys("k-operator", "k-metrics")
    application = await asyncio.to_thread(
        app, DirectoryRules(CONFIG, owners), directory, signed_keys, operator, httpx.AsyncClient(), editions=editions
    )
    transport = httpx.ASGITransport(application)
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://directory", headers=headers) as made:
        yield made
