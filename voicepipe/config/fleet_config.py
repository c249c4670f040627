"""Tables of the configuration that concern several PoPs: the directories in front of them, the bus between them."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from voicepipe.base.places import check_place
from voicepipe.base.ranges import Section, Variable
from voicepipe.base.secret_source import SecretPair, check_pairs

BUSES = ("nats", "tls", "ws", "wss")
Kind = Literal["websocket", "webrtc"]
"""A kind of call."""


class FleetConfig(Section, frozen=True):
    """This PoP as part of a fleet: what directories know of it, and whose tokens it accepts."""

    keys: tuple[str, ...] = ()
    """Paths of directories' Ed25519 public keys (PEM). Empty: no directory sends calls here."""
    url: str = ""
    """Its address for callers and directories, as "https://fra1.example.com"."""
    kinds: tuple[Kind, ...] = ("websocket", "webrtc")
    """Kinds of calls that reach it there."""
    sip: str = ""
    """Its address for telephones by SIP, as "203.0.113.5:5060"; empty: `sip.public_address` or `sip.host`."""
    place: tuple[float, ...] = ()
    """Its place on the globe: latitude and longitude in degrees. Empty: unknown, and its distance as well until callers
    measure it."""
    zone: str = ""
    """The zone in which its data are by law, such as "eu"."""
    weight: Annotated[float, Meta(gt=0)] = 1.0
    """Its weight where it shares a crowd of calls with others as near."""
    editions: str = ""
    """Folder for pushed editions: agents, routes and tenants. Empty: this PoP keeps to its own files."""
    edition: Annotated[int, Meta(ge=0)] = 0
    """The number of the edition at which it stays; 0: it takes the newest."""
    functions: tuple[str, ...] = ()
    """Python modules whose functions pushed agents may name, with their submodules."""

    def __post_init__(self) -> None:
        check_place(self.place)
        if self.edition and not self.editions:
            raise ValueError("edition: editions are kept in a folder; say which one (editions)")
        parts = urlsplit(self.url)
        whole = parts.scheme in ("https", "http") and parts.hostname and not (parts.path.strip("/") or parts.query)
        if self.url and not whole:
            raise ValueError(
                f"url: {self.url!r} is none of a PoP; give one without a path, as https://fra1.example.com"
            )


class TlsConfig(Section, frozen=True):
    """Connections that this host makes by TLS."""

    ca: str = ""
    """Path of the certificates (PEM) of private authorities that are trusted besides the system's; empty: none."""


class BusConfig(Section, frozen=True):
    """The bus that connects PoPs and directories."""

    servers: tuple[str, ...] = ()
    """Addresses of NATS, as "tls://nats.example.com:4222". One that works is enough; empty: there is no bus."""
    credentials: str = ""
    """Path of a file with this host's JWT and seed (`nsc generate creds`), which define what it may publish."""
    user: str = ""
    """The user without credentials, as the servers' configuration names it ..."""
    password_env: Variable = ""
    """... and the environment variable that holds its password, ..."""
    password_file: str = ""
    """... or the file that does."""
    password = SecretPair()

    def __post_init__(self) -> None:
        check_pairs(self)
        for server in self.servers:
            if urlsplit(server).scheme not in BUSES or not urlsplit(server).hostname:
                raise ValueError(f"servers: {server!r} is none; give one such as nats://127.0.0.1:4222")
        if bool(self.user) != bool(self.password):
            raise ValueError(
                "user and password_env go together; give both, or credentials alone (password_file does as well)"
            )
        if self.user and self.credentials:
            raise ValueError("credentials and user are two ways to say who this host is; leave one of them out")
