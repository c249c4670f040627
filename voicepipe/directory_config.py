"""Configuration of a directory: `configs/directory.toml` has every key with its default."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta

from voicepipe import toml_file
from voicepipe.config import HttpConfig, TenantConfig
from voicepipe.errors import ConfigError
from voicepipe.places import Place
from voicepipe.ranges import Name, Section

SCHEMES = ("nats", "tls", "ws", "wss")
PATHS = (("directory", "key"), ("bus", "credentials"), ("http", "cert"), ("http", "key"))
"""Tables and keys that name files."""


class DirectorySection(Section, frozen=True):
    """`[directory]`."""

    id: Name = "directory"
    key: str = ""
    """Path of the Ed25519 private key (PEM) that signs its tokens."""
    place: Place | None = None
    """Where it stands. Callers are taken to be there who do not say where they are."""
    connections: Annotated[int, Meta(ge=10)] = 1000
    """Open at a time."""


class BusConfig(Section, frozen=True):
    """How PoPs and directories hear of each other."""

    servers: tuple[str, ...] = ()
    """Of NATS, as "tls://nats.example.com:4222". One that lives is enough; empty: there is no bus."""
    credentials: str = ""
    """Path of a file with this host's JWT and seed (`nsc generate creds`), which say what it may publish."""
    user: str = ""
    """Without credentials: as the servers' configuration names it ..."""
    password_env: str = ""
    """... and the environment variable that holds its password."""

    def __post_init__(self) -> None:
        for server in self.servers:
            if urlsplit(server).scheme not in SCHEMES or not urlsplit(server).hostname:
                raise ValueError(f"servers: {server!r} is none; give one such as nats://127.0.0.1:4222")
        if bool(self.user) != bool(self.password_env):
            raise ValueError("user and password_env go together; give both, or credentials alone")
        if self.user and self.credentials:
            raise ValueError("credentials and user are two ways to say who this host is; leave one of them out")


class DirectoryTenant(TenantConfig, frozen=True):
    """A key's owner."""

    zone: str = ""
    """Their calls may not leave it, such as "eu"; empty: they may go anywhere."""


class DirectoryConfig(Section, frozen=True):
    """The whole file."""

    directory: DirectorySection = DirectorySection()
    bus: BusConfig = BusConfig()
    http: HttpConfig = HttpConfig()
    tenants: tuple[DirectoryTenant, ...] = ()


def load(file: Path) -> DirectoryConfig:
    """Paths in the result are absolute. Raises ConfigError with one line for each problem."""
    tables = toml_file.tables(file)
    toml_file.convert(tables, DirectoryConfig, file)
    for table, key in PATHS:
        if name := tables.get(table, {}).get(key):
            path = file.resolve().parent / name
            if not path.exists():
                raise ConfigError(f"{file}: {table}.{key}: there is no {path}; paths are relative to this file")
            tables[table][key] = str(path)
    return toml_file.convert(tables, DirectoryConfig, file)
