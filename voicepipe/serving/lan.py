"""What browsers of other machines need to call this one: TLS for its addresses on the network, and a key.

Browsers give the microphone to https pages alone, so a plain http address of this machine would be of no use to them.
"""

import ipaddress
import socket
import ssl
import tempfile
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import ifaddr
import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from voicepipe.base.environment import made_up, state_directory
from voicepipe.base.errors import ConfigError
from voicepipe.config import Config
from voicepipe.config.credentials import keyed, keys_of, sip_passwords
from voicepipe.config.phone_config import SipUser

ALL = "0.0.0.0"
LOOPBACK = "127.0.0.1"
KEY_ENV = "VOICEPIPE_LAN_KEY"
PASSWORD_ENV = "VOICEPIPE_LAN_SIP_PASSWORD"
SHORTEST = 8
"""Characters of the shortest key or password."""
SIP_USER = "lan"
VALID = timedelta(days=30)
"""Validity of a certificate: one browser warning a month."""
RENEWED = timedelta(days=1)
"""Time before its end at which it is renewed, so that a certificate does not expire while it is served."""


def opened(config: Config) -> Config:
    """`config` for all IPv4 addresses of this machine: TLS, a key that the tenant "lan" must show, and for telephones
    a user "lan" with a password of its own, for what they send can be overheard.

    Both are new unless the environment variables VOICEPIPE_LAN_KEY and VOICEPIPE_LAN_SIP_PASSWORD are set. Raises
    ConfigError: there is no network, nowhere to keep the certificate, or one of them is too short.
    """
    found = addresses()
    if not found:
        raise ConfigError("this machine has no address that another one could call; join a network, or omit --lan")
    named = {name for name in (socket.gethostname(),) if name.isascii()}  # certificates know no others
    pem = str(certificate(state_directory() / "lan.pem", {*found, LOOPBACK, "localhost", *named}))
    http = msgspec.structs.replace(config.http, host=ALL, cert=pem, key=pem)
    sip = msgspec.structs.replace(config.sip, users=(SipUser(name=SIP_USER, password_env=PASSWORD_ENV),))
    for name in (KEY_ENV, PASSWORD_ENV):
        if len(made_up(name)) < SHORTEST:
            raise ConfigError(f"{name} is too short for a password on a network; give it {SHORTEST} characters or "
                              "more, or unset it, and a new one is made")  # fmt: skip
    return keyed(msgspec.structs.replace(config, http=http, sip=sip), "lan", KEY_ENV)


def sip_user(config: Config) -> tuple[str, str]:
    """Name and password for a telephone."""
    [user] = sip_passwords(config.sip.users).items()
    return user


def urls(config: Config) -> list[str]:
    """Addresses to open on another machine. The key is in the fragment, which browsers do not send to servers."""
    [key] = keys_of(config.tenants)
    return [f"https://{address}:{config.http.port}/#key={quote(key, safe='')}" for address in addresses()]


def fingerprint(config: Config) -> str:
    """SHA-256 of the certificate, as browsers show it."""
    made = x509.load_pem_x509_certificate(Path(config.http.cert).read_bytes())
    return made.fingerprint(hashes.SHA256()).hex(":").upper()


def trust(config: Config) -> ssl.SSLContext:
    """An SSL context for clients in this process, which trusts the PoP's certificate and no other."""
    return ssl.create_default_context(cafile=config.http.cert)


def addresses() -> list[str]:
    """This machine's IPv4 addresses that others may reach, in the order of its interfaces."""
    found = [ip.ip for adapter in ifaddr.get_adapters() for ip in adapter.ips if isinstance(ip.ip, str)]
    return [ip for ip in found if not (ipaddress.ip_address(ip).is_loopback or ipaddress.ip_address(ip).is_link_local)]


def certificate(file: Path, names: Collection[str]) -> Path:
    """`file`, with a certificate for these host names and addresses, and its private key; made where it is missing or
    unfit. Raises ConfigError: it cannot be written."""
    if not _serves(file, names):
        try:
            _write(file, _made(names))
        except OSError as error:
            raise ConfigError(
                f"the certificate cannot be kept in {file} ({error.strerror}); "
                "set XDG_STATE_HOME to a directory that can be written"
            ) from error
    return file


def _serves(file: Path, names: Collection[str]) -> bool:
    """Whether `file` is valid for long enough and for all of `names`."""
    try:
        made = x509.load_pem_x509_certificate(file.read_bytes())
        known = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    lasts = made.not_valid_after_utc - RENEWED > datetime.now(UTC)
    return lasts and {_name(name) for name in names} <= set(known)


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _made(names: Collection[str]) -> bytes:
    """A self-signed certificate and its private key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "voicepipe on this network")])
    now = datetime.now(UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # for clocks that are late
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName(map(_name, sorted(names))), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM) + private


def _write(file: Path, content: bytes) -> None:
    """Write a file whole or not at all, and readable by its owner only, as temporary files are."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent)
    with open(descriptor, "wb") as new:
        new.write(content)
    Path(name).replace(file)
