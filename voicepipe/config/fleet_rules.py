"""What a whole fleet goes by besides its agents: `[[tenants]]` and `[[routes]]`, in one file for PoPs and directories.

It is sent to all of them by `voicepipe push --with`. Keys are in no file: each host has the variables that it names.
"""

from pathlib import Path

from msgspec.structs import asdict, replace

from voicepipe.agent import Hooks
from voicepipe.config import Config, TenantConfig, toml_file
from voicepipe.config.directory_config import DirectoryConfig, DirectoryRoute, DirectoryTenant
from voicepipe.config.file_kind import check_kind
from voicepipe.ranges import Section


class FleetTenant(DirectoryTenant, frozen=True):
    """A key's owner. PoPs pass over `zone`, and directories over `hooks`."""

    hooks: Hooks = Hooks()
    """Who is told of its calls, where their agent names nobody."""


class FleetRules(Section, frozen=True):
    """The whole file. Where it lacks one of the tables, each host keeps its own."""

    tenants: tuple[FleetTenant, ...] = ()
    routes: tuple[DirectoryRoute, ...] = ()
    """PoPs pass over `region`."""

    def at_pop(self, config: Config) -> Config:
        """A PoP's configuration with these in it; not checked."""
        own = [TenantConfig(**{key: asdict(tenant)[key] for key in TenantConfig.__struct_fields__})
               for tenant in self.tenants]  # fmt: skip
        return replace(config, tenants=tuple(own) or config.tenants, routes=self.routes or config.routes)

    def at_directory(self, config: DirectoryConfig) -> DirectoryConfig:
        """A directory's, likewise."""
        return replace(config, tenants=self.tenants or config.tenants, routes=self.routes or config.routes)


def load(file: Path) -> FleetRules:
    """Raises ConfigError with one line for each problem."""
    tables = toml_file.tables(file)
    check_kind(file, tables, "rules")
    return toml_file.convert(tables, FleetRules, file)
