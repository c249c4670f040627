"""A PoP among others: what it tells directories, and the calls that they send."""

import hashlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from voicepipe.call_api import Grant
from voicepipe.config import Config, bus_password
from voicepipe.directory.bus import Bus
from voicepipe.directory.report import Condition
from voicepipe.directory.reporter import Reporter
from voicepipe.directory.tokens import Gate, Signer, audience
from voicepipe.errors import ConfigError
from voicepipe.fleet_config import BusConfig


class Membership:
    """Implements `call_api.Tokens`."""

    def __init__(self, bus: Bus, config: Config, condition: Callable[[], Condition]) -> None:
        self._reporter = Reporter(bus, config.pop.id, condition)
        keys = {key_id(key): key for key in map(public_key, config.fleet.keys)}
        self._gate = Gate(audience(config.pop.id, self._reporter.epoch), keys, time.time)

    async def run(self) -> None:
        """Report until cancelled; then say goodbye."""
        await self._reporter.run()

    def tell(self) -> None:
        """Report now, and not only when the second is over."""
        self._reporter.tell()

    def read(self, token: str) -> Grant:
        return self._gate.read(token)

    def use(self, grant: Grant) -> None:
        self._gate.use(grant)
        self._reporter.began(grant.id)


@asynccontextmanager
async def on_bus(config: BusConfig) -> AsyncIterator[Bus]:
    """The bus that is configured. Raises ConfigError."""
    from voicepipe.directory.nats_bus import NatsBus, Servers

    credentials = Path(config.credentials) if config.credentials else None
    async with NatsBus.connected(Servers(config.servers, credentials, config.user, bus_password(config))) as bus:
        yield bus


def public_key(path: str) -> Ed25519PublicKey:
    """Raises ConfigError."""
    try:
        key = load_pem_public_key(Path(path).read_bytes())
        if isinstance(key, Ed25519PublicKey):
            return key
    except (OSError, ValueError, UnsupportedAlgorithm):
        pass
    raise ConfigError(
        f"fleet.keys: {path} is no Ed25519 public key; make one of the directory's key: "
        "openssl pkey -in directory.pem -pubout -out directory.pub.pem"
    )


def signer(path: str) -> Signer:
    """Raises ConfigError."""
    try:
        key = load_pem_private_key(Path(path).read_bytes(), None)
        if isinstance(key, Ed25519PrivateKey):
            return Signer(key_id(key.public_key()), key)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        pass
    raise ConfigError(
        f"directory.key: {path or 'it'} is no Ed25519 private key without a password; make one: "
        "openssl genpkey -algorithm ed25519 -out directory.pem"
    )


def key_id(key: Ed25519PublicKey) -> str:
    """By which a token says whose signature it has."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]
