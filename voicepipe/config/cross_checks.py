"""Checks tables of a configuration that are right alone, and may contradict each other."""

from itertools import pairwise

from voicepipe.base.errors import ConfigError
from voicepipe.config.directory_config import DirectoryConfig
from voicepipe.config.phone_config import takes_phones
from voicepipe.config.pop_config import Config

RISING = (
    *(("endpoint", (least, "longest_ms")) for least in ("sure_ms", "answer_ms", "yes_ms")),
    ("vad", ("stop_probability", "start_probability")),
    ("vad", ("telephone_stop_probability", "start_probability")),
    ("turn", ("guess_ms", "prepare_ms")),
    ("turn", ("pause_ms", "cut_ms")),
    ("ladder", ("acknowledge_ms", "fallback_ms")),
)
"""Keys of a table in rising order: none may be more than the next one. A step of the ladder that is 0 is turned off."""


def check_together(config: Config) -> None:
    """Raises ConfigError: tables that are right alone contradict each other."""
    for table, keys in RISING:
        its = getattr(config, table)
        for less, more in pairwise(keys):
            low, high = getattr(its, less), getattr(its, more)
            if low > high and not (table == "ladder" and high == 0):
                raise ConfigError(f"{table}.{less}: cannot be {low}, more than {table}.{more}, which is {high}")
    check_owners(config)
    _check_records(config)
    if config.telnyx.public_key and not config.telephony.public_url:
        raise ConfigError(
            "telephony.public_url: Telnyx is told where to stream calls to; say how it reaches this server"
        )
    if config.bus.servers and not (config.fleet.keys and config.fleet.url):
        raise ConfigError(
            "fleet: directories will hear of this PoP by [bus]; say how callers reach it (url) and whose "
            "tokens it takes (keys)"
        )
    if config.fleet.sip and not config.sip.port:
        raise ConfigError(
            "fleet.sip: telephones reach nothing there while sip.port = 0; set that, to 5060 for instance"
        )


def check_owners(config: Config | DirectoryConfig) -> None:
    """Raises ConfigError: two tenants cannot be distinguished (the same tenant may have several keys), a route names
    something that does not exist, or the tenant of its calls is unclear."""
    owners: dict[str, str] = {}
    for index, tenant in enumerate(config.tenants):
        if (its := tenant.key.text) in owners:
            key = tenant.key.key_at(f"tenants[{index}].key")
            raise ConfigError(f"{key}: {its} is the key of {owners[its]} already; "
                              f"name another {'file' if tenant.key.file else 'variable'}")  # fmt: skip
        owners[its] = tenant.name
    names = list(dict.fromkeys(tenant.name for tenant in config.tenants))
    trunks = [trunk.name for trunk in config.sip.trunks]
    if len(names) > 1 and not config.routes and takes_phones(config.sip, config.twilio, config.telnyx):
        raise ConfigError(f"routes: say whose phone calls are in [[routes]]; tenants: {', '.join(names)}")
    for index, route in enumerate(config.routes):
        if route.trunk and route.trunk not in trunks:
            allowed = ", ".join(trunks) or "none, since no [[sip.trunks]] are configured"
            raise ConfigError(f"routes[{index}].trunk: there is no trunk {route.trunk}; allowed: {allowed}")
        if route.tenant and route.tenant not in names:
            allowed = ", ".join(names) or "none, since no [[tenants]] are configured"
            raise ConfigError(f"routes[{index}].tenant: there is no tenant {route.tenant}; allowed: {allowed}")
        if not route.tenant and len(names) > 1:
            raise ConfigError(f"routes[{index}].tenant: say whose calls these are; allowed: {', '.join(names)}")


def _check_records(config: Config) -> None:
    """Raises ConfigError: something needs records, and none are kept."""
    if config.records.folder:
        return
    wanted = ["records.lines"] if config.records.lines else []
    wanted += [f"tenants[{index}].hooks" for index, tenant in enumerate(config.tenants) if tenant.hooks.after_call]
    for key in wanted:
        raise ConfigError(f"{key}: needs records of calls; say where they are kept (records.folder)")
