"""Configuration: TOML files into frozen structs (`pop_config.py`). Secrets are in the environment, or in
files of their own (`base/secret_source.py`).

`configs/default.toml` names every key with its default and a comment; a test keeps the two equal.
"""

from voicepipe.config.cross_checks import check_together
from voicepipe.config.files import (
    load,
    load_directory,
    load_hosts,
    load_probe,
    load_rules,
    parse,
    parse_rules,
    shipped_files,
)
from voicepipe.config.pop_config import (
    Config,
    HttpConfig,
    KeyOwner,
    LadderConfig,
    LimitsConfig,
    PopConfig,
    TenantConfig,
)

__all__ = [
    "Config", "HttpConfig", "KeyOwner", "LadderConfig", "LimitsConfig", "PopConfig", "TenantConfig", "check_together",
    "shipped_files", "load", "load_directory", "load_hosts", "load_probe", "load_rules", "parse", "parse_rules",
]  # fmt: skip
