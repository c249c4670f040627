"""`voicepipe configs write`: a folder for each host of a fleet, with all that it has in `/etc/voicepipe`."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from voicepipe.base.errors import ConfigError
from voicepipe.commands import fleet_certificates
from voicepipe.commands.host_files import CA, DIRECTORY_KEY, PUBLIC_KEY, files_of, names_of, passwords
from voicepipe.config import load_hosts
from voicepipe.config.hosts_config import HostsConfig

CA_KEY = "fleet-ca.key"


def write(file: Path, folder: Path) -> int:
    """Write what the hosts in `file` need into `folder`, and print each host's folder. Keys, passwords and the
    authority that are there stay; certificates are made anew. Returns the exit status. Raises ConfigError."""
    fleet = load_hosts(file)
    try:
        made = _made(fleet, folder / "secrets")
        for host in fleet.hosts:
            its = folder / host.name
            for name, text in files_of(host, fleet, made):
                _put(its / name, text, hidden=name.startswith("secrets/"))
            key = fleet_certificates.new_key()
            _put(its / "tls" / "privkey.pem", key, hidden=True)
            chain = fleet_certificates.certificate(made[CA], made[CA_KEY], key, names_of(host, fleet), host.address)
            _put(its / "tls" / "fullchain.pem", chain)
            print(f"{its}/ is {host.name}:/etc/voicepipe")
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}") from None
    print(f"{folder}/secrets/ stays with you: keys, passwords and {CA_KEY}, which makes certificates")
    return 0


def _made(fleet: HostsConfig, folder: Path) -> dict[str, str]:
    """Keys, passwords and the authority, by name: those in `folder`, and new ones where they are missing."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    makers: dict[str, Callable[[], str]] = dict.fromkeys(passwords(fleet), _password)
    makers[DIRECTORY_KEY] = _signing_key
    makers[CA_KEY] = fleet_certificates.new_key
    made = {name: _kept(folder / name, make) for name, make in makers.items()}
    made[CA] = _kept(folder / CA, lambda: fleet_certificates.authority(made[CA_KEY], f"voicepipe at {fleet.callers}"))
    made[PUBLIC_KEY] = _kept(folder / PUBLIC_KEY, lambda: _public(made[DIRECTORY_KEY]))
    return made


def _kept(file: Path, make: Callable[[], str]) -> str:
    if not file.exists():
        _put(file, make(), hidden=True)
    return file.read_text("utf-8").strip() + "\n"


def _put(file: Path, text: str, *, hidden: bool = False) -> None:
    """Write it. What is hidden is never anybody else's to read."""
    file.parent.mkdir(mode=0o700 if hidden else 0o755, parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if hidden else 0o644), "w") as new:
        new.write(text)


def _password() -> str:
    # NATS takes what begins with a digit for a number, unless it is quoted.
    return "p" + secrets.token_hex(24)


def _signing_key() -> str:
    made = Ed25519PrivateKey.generate()
    kind = serialization.PrivateFormat.PKCS8
    return made.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()


def _public(key: str) -> str:
    its = serialization.load_pem_private_key(key.encode(), None).public_key()
    return its.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
