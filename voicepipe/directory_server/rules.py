"""What a directory goes by: its file, with the tenants and routes of the newest edition."""

from collections.abc import Mapping

from voicepipe.config.credentials import keys_of
from voicepipe.config.directory_config import DirectoryConfig, DirectoryTenant
from voicepipe.tenants import Tenants


class Rules:
    """Of one directory. `keys`: of the tenants that `config` names, as `credentials.keys_of` finds them."""

    def __init__(self, config: DirectoryConfig, keys: Mapping[str, DirectoryTenant]) -> None:
        self.config = config
        """Its tenants and routes may be others later; all else stays."""
        self.keys = Tenants(keys, "directory")

    def become(self, config: DirectoryConfig) -> None:
        """Those of this configuration count from now on. Raises ConfigError: a tenant's key is not in the environment;
        then nothing has changed."""
        self.keys.become(keys_of(config.tenants))
        self.config = config

    def tenant(self, name: str) -> DirectoryTenant | None:
        return next((tenant for tenant in self.config.tenants if tenant.name == name), None)
