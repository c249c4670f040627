"""Keys of directories, in files: the private one signs tokens, the public ones are at the PoPs."""

import hashlib
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from voicepipe.base.errors import ConfigError
from voicepipe.config import Config
from voicepipe.directory.tokens import Signer


def public_key(path: str) -> Ed25519PublicKey:
    """A public key from its file. Raises ConfigError."""
    try:
        key = load_pem_public_key(Path(path).read_bytes())
        if isinstance(key, Ed25519PublicKey):
            return key
    except (OSError, ValueError, UnsupportedAlgorithm):
        pass
    raise ConfigError(
        f"{path} is no Ed25519 public key; make one of the directory's key: "
        "openssl pkey -in directory.pem -pubout -out directory.pub.pem"
    )


def check_keys(config: Config) -> None:
    """Raises ConfigError: a public key by which a PoP is to know directories cannot be read."""
    for path in config.fleet.keys:
        try:
            public_key(path)
        except ConfigError as error:
            raise ConfigError(f"fleet.keys: {error}") from None


def signer(path: str) -> Signer:
    """The signer with the private key from its file. Raises ConfigError."""
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
    """The key's id, by which a token names its signer."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]
