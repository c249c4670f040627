"""Tables of the configuration that concern several PoPs: the directories in front of them, the bus between them."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from voicepipe.base.places import check_place
from voicepipe.base.ranges import Section, Variable

BUSES = ("nats", "tls", "ws", "wss")
Kind = Literal["websocket", "webrtc"]
"""Of call."""


class FleetConfig(Section, frozen=True):
    """This PoP among others: what directories are told of it, and whose tokens it takes."""

    keys: tuple[str, ...] = ()
    """Paths of directories' Ed25519 public keys (PEM). Empty: no directory sends calls here."""
    url: str = ""
    """Where callers and directories reach it, as "https://fra1.example.com"."""
    kinds: tuple[Kind, ...] = ("websocket", "webrtc")
    """By which callers reach it there."""
    sip: str = ""
    """Where telephones reach it by SIP, as "203.0.113.5:5060"; empty: at `sip.public_address` or `sip.host`."""
    place: tuple[float, ...] = ()
    """Where it stands: latitude and longitude in degrees. Empty: nobody knows how near it is until callers measure."""
    zone: str = ""
    """Where the law says that its data are, such as "eu"."""
    weight: Annotated[float, Meta(gt=0)] = 1.0
    """How much of a crowd it is to have, beside others as near."""
    editions: str = ""
    """Folder for what operators push: agents, routes and tenants. Empty: this PoP keeps to its own files."""
    edition: Annotated[int, Meta(ge=0)] = 0
    """The number of the one that it stays at; 0: it takes the newest."""
    functions: tuple[str, ...] = ()
    """Python modules whose functions pushed agents may name, with those below them."""

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


class BusConfig(Section, frozen=True):
    """How PoPs and directories hear of each other."""

    servers: tuple[str, ...] = ()
    """Of NATS, as "tls://nats.example.com:4222". One that lives is enough; empty: there is no bus."""
    credentials: str = ""
    """Path of a file with this host's JWT and seed (`nsc generate creds`), which say what it may publish."""
    user: str = ""
    """Without credentials: as the servers' configuration names it ..."""
    password_env: Variable = ""
    """... and the environment variable that holds its password."""

    def __post_init__(self) -> None:
        for server in self.servers:
            if urlsplit(server).scheme not in BUSES or not urlsplit(server).hostname:
                raise ValueError(f"servers: {server!r} is none; give one such as nats://127.0.0.1:4222")
        if bool(self.user) != bool(self.password_env):
            raise ValueError("user and password_env go together; give both, or credentials alone")
        if self.user and self.credentials:
            raise ValueError("credentials and user are two ways to say who this host is; leave one of them out")
