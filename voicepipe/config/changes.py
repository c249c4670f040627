"""What of a configuration that is read again can be used at once, and what waits for the next start. Pure."""

from collections.abc import Collection, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from voicepipe.config.directory_config import DirectoryConfig
from voicepipe.config.pop_config import Config

Served = TypeVar("Served", bound=Config | DirectoryConfig)
"""The configuration of a server."""
REREAD = frozenset({
    "log", "tenants", "routes", "canaries",
    "http.cert", "http.key", "http.operator_key", "http.metrics_key",
    "pop.agents", "pop.default_agent",
    "sip.trunks", "sip.users", "twilio.auth_token", "telnyx.public_key", "telnyx.api_key",
    "webrtc.turn_urls", "webrtc.turn_secret", "webrtc.turn_ttl_s",
    "fleet.keys", "directory.keys",
})  # fmt: skip
"""Tables and keys that are used at once: whoever uses one reads it at each use, or joins `Rereads`. A secret
stands here without the end of its keys, `_env` or `_file`."""
SWITCHES = frozenset({
    "http.cert", "http.key", "twilio.auth_token", "telnyx.public_key", "telnyx.api_key", "fleet.keys",
})  # fmt: skip
"""Those that also say whether there is such a thing at all, as TLS: that is decided at the start."""
SOURCES = ("_env", "_file")
"""Ends of the keys that say where a secret is."""


class Change(NamedTuple, Generic[Served]):
    """What becomes of a server's configuration once its files were read again."""

    config: Served
    """The one to use now: as before, but for what is used at once."""
    taken: tuple[str, ...]
    """Keys that differ from before and are used at once."""
    waiting: tuple[str, ...]
    """Keys that differ and wait for the next start."""


def change(running: Served, fresh: Served) -> Change[Served]:
    """The change from the configuration in use to the one that the files hold now. Raises
    ValueError: what is used at once and what is kept contradict each other within a table."""
    tables: dict[str, Any] = {}
    taken: list[str] = []
    waiting: list[str] = []
    for name in running.__struct_fields__:
        old, new = getattr(running, name), getattr(fresh, name)
        if old == new:
            continue
        if name in REREAD:
            tables[name] = new
            taken.append(name)
        elif isinstance(old, Struct):
            now = {key: getattr(new, key) for key in _differing(old, new) if _is_reread(name, key, old, new)}
            waiting += [f"{name}.{key}" for key in _differing(old, new) if key not in now]
            taken += [f"{name}.{key}" for key in now]
            tables[name] = replace(old, **now)
        else:
            waiting.append(name)
    return Change(replace(running, **tables), tuple(taken), tuple(waiting))


def _differing(old: Struct, new: Struct) -> Iterator[str]:
    return (key for key in old.__struct_fields__ if getattr(old, key) != getattr(new, key))


def _is_reread(table: str, key: str, old: Struct, new: Struct) -> bool:
    stem = next((key.removesuffix(end) for end in SOURCES if key.endswith(end)), key)
    if f"{table}.{stem}" not in REREAD:
        return False
    return f"{table}.{stem}" not in SWITCHES or _is_set(stem, old) == _is_set(stem, new)


def _is_set(stem: str, table: Struct) -> bool:
    keys: Collection[str] = {stem, *(stem + end for end in SOURCES)}
    return any(getattr(table, key) for key in table.__struct_fields__ if key in keys)
