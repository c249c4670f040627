"""What a whole fleet goes by besides its agents, in one file for PoPs and directories: whose calls it takes, where they
go, and what is on trial.

It is sent to all of them by `voicepipe push --with`. Keys are in no file: each host has the variables that it names.
"""

from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from voicepipe.agent import Hooks
from voicepipe.config import Config, TenantConfig, toml_file
from voicepipe.config.directory_config import CanaryConfig, DirectoryConfig, DirectoryRoute, DirectoryTenant
from voicepipe.config.file_kind import check_kind
from voicepipe.ranges import Section


class FleetTenant(DirectoryTenant, frozen=True):
    """A key's owner. PoPs pass over `zone`, and directories over `hooks`."""

    hooks: Hooks = Hooks()
    """Who is told of its calls, where their agent names nobody."""


class FleetRules(Section, frozen=True):
    """The whole file. Where it lacks one of the tables, each host keeps its own; `routes = []` says that there are
    none."""

    tenants: tuple[FleetTenant, ...] | None = None
    routes: tuple[DirectoryRoute, ...] | None = None
    """PoPs pass over `region`."""
    canaries: tuple[CanaryConfig, ...] | None = None
    """For directories."""

    def at_pop(self, config: Config) -> Config:
        """A PoP's configuration with these in it; not checked."""
        own = config.tenants if self.tenants is None else tuple(map(_at_pop, self.tenants))
        return replace(config, tenants=own, routes=config.routes if self.routes is None else self.routes)

    def at_directory(self, config: DirectoryConfig) -> DirectoryConfig:
        """A directory's, likewise."""
        said = {"tenants": self.tenants, "routes": self.routes, "canaries": self.canaries}
        return replace(config, **{table: rows for table, rows in said.items() if rows is not None})


def _at_pop(tenant: FleetTenant) -> TenantConfig:
    known = asdict(tenant)
    return TenantConfig(**{key: known[key] for key in TenantConfig.__struct_fields__})


def load(file: Path) -> FleetRules:
    """Raises ConfigError with one line for each problem."""
    return _of(toml_file.tables(file), file)


def parsed(text: str, name: str) -> FleetRules:
    """The same of a text; `name` is how its file is called."""
    return _of(toml_file.parsed(text, name), Path(name))


def _of(tables: dict[str, Any], file: Path) -> FleetRules:
    check_kind(file, tables, "rules")
    return toml_file.convert(tables, FleetRules, file)
