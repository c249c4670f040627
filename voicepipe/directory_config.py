"""Configuration of a directory: `configs/directory.toml` has every key with its default."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from voicepipe import toml_file
from voicepipe.config import HttpConfig, TenantConfig, existing
from voicepipe.fleet_config import BusConfig
from voicepipe.places import check_place
from voicepipe.ranges import Name, Section

PATHS = (("directory", "key"), ("bus", "credentials"), ("http", "cert"), ("http", "key"))
"""Tables and keys that name files."""


class DirectorySection(Section, frozen=True):
    """`[directory]`."""

    id: Name = "directory"
    key: str = ""
    """Path of the Ed25519 private key (PEM) that signs its tokens."""
    place: tuple[float, ...] = ()
    """Where it stands: latitude and longitude. Callers are taken to be there who do not say where they are."""
    connections: Annotated[int, Meta(ge=10)] = 1000
    """Open at a time."""

    def __post_init__(self) -> None:
        check_place(self.place)


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
            tables[table][key] = existing(file, f"{table}.{key}", name)
    return toml_file.convert(tables, DirectoryConfig, file)
