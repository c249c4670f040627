"""The rules of a whole fleet besides its agents, in one file for PoPs and directories: whose calls it takes, where they
go, and what is on trial.

It is sent to all of them by `voicepipe push --with`. Keys are in no file: each host has the variables that it names.
"""

from msgspec.structs import asdict, replace

from voicepipe.agent import Hooks
from voicepipe.base.ranges import Section
from voicepipe.config.directory_config import CanaryConfig, DirectoryConfig, DirectoryRoute, DirectoryTenant
from voicepipe.config.pop_config import Config, TenantConfig


class FleetTenant(DirectoryTenant, frozen=True):
    """A tenant in the rules of a fleet: the owner of a key. PoPs ignore `zone`, and directories `hooks`."""

    hooks: Hooks = Hooks()
    """Receivers of webhooks about its calls, where their agent names none."""


class FleetRules(Section, frozen=True):
    """The rules of a whole fleet besides its agents, in one file for PoPs and directories. Where it lacks one of the
    tables, each host keeps its own; `routes = []` means that there are none."""

    tenants: tuple[FleetTenant, ...] | None = None
    routes: tuple[DirectoryRoute, ...] | None = None
    """PoPs ignore `region`."""
    canaries: tuple[CanaryConfig, ...] | None = None
    """For directories."""

    def at_pop(self, config: Config) -> Config:
        """A PoP's configuration with these rules; not checked."""
        own = config.tenants if self.tenants is None else tuple(map(_at_pop, self.tenants))
        return replace(config, tenants=own, routes=config.routes if self.routes is None else self.routes)

    def at_directory(self, config: DirectoryConfig) -> DirectoryConfig:
        """A directory's configuration with these rules; not checked."""
        said = {"tenants": self.tenants, "routes": self.routes, "canaries": self.canaries}
        return replace(config, **{table: rows for table, rows in said.items() if rows is not None})


def _at_pop(tenant: FleetTenant) -> TenantConfig:
    known = asdict(tenant)
    return TenantConfig(**{key: known[key] for key in TenantConfig.__struct_fields__})
