"""What of files that are read again is used at once, and what waits for a restart."""

from typing import Any

import msgspec
import pytest

from voicepipe.config import Config
from voicepipe.config.changes import REREAD, SOURCES, change
from voicepipe.config.directory_config import DirectoryConfig

TENANT = {"name": "acme", "key_env": "ACME"}
NUMBER = "GZ6J9yBkJHjvG2vPo0mM2LkG1J6rJ0o5Xv0Yc0y5bW8="


def pop(**tables: Any) -> Config:
    return msgspec.convert(tables, Config)


@pytest.mark.parametrize(
    ("before", "after", "taken", "waiting"),
    [
        ({}, {}, (), ()),
        ({}, {"log": {"level": "debug", "format": "json"}}, ("log",), ()),
        ({}, {"tenants": [TENANT]}, ("tenants",), ()),
        ({}, {"pop": {"slots": 7}}, (), ("pop.slots",)),
        ({}, {"pop": {"slots": 7, "default_agent": "clinic"}}, ("pop.default_agent",), ("pop.slots",)),
        ({}, {"engines": {"llm": "openai"}, "whisper": {"threads": 2}}, (), ("engines.llm", "whisper.threads")),
        ({}, {"http": {"operator_key_env": "A", "port": 9}}, ("http.operator_key_env",), ("http.port",)),
        (
            {"http": {"cert": "a", "key": "a"}},
            {"http": {"cert": "b", "key": "c"}},
            ("http.cert", "http.key"),
            (),
        ),
        ({}, {"http": {"cert": "a", "key": "b"}}, (), ("http.cert", "http.key")),
        ({"twilio": {"auth_token_env": "A"}}, {"twilio": {"auth_token_env": "B"}}, ("twilio.auth_token_env",), ()),
        ({"twilio": {"auth_token_env": "A"}}, {}, (), ("twilio.auth_token_env",)),
        (
            {},
            {"telnyx": {"public_key": NUMBER, "api_key_env": "A"}},
            (),
            ("telnyx.public_key", "telnyx.api_key_env"),
        ),
        ({"fleet": {"keys": ["a"]}}, {"fleet": {"keys": ["a", "b"]}}, ("fleet.keys",), ()),
        ({"fleet": {"keys": ["a"]}}, {}, (), ("fleet.keys",)),
        (
            {},
            {"sip": {"port": 5060, "users": [{"name": "desk", "password_env": "A"}]}},
            ("sip.users",),
            ("sip.port",),
        ),
    ],
)
def test_what_of_a_pops_files_is_used_at_once(
    before: dict[str, Any], after: dict[str, Any], taken: tuple[str, ...], waiting: tuple[str, ...]
) -> None:
    running, fresh = pop(**before), pop(**after)
    found = change(running, fresh)
    assert (set(found.taken), set(found.waiting)) == (set(taken), set(waiting))
    for name in found.taken:
        assert value(found.config, name) == value(fresh, name)
    for name in found.waiting:
        assert value(found.config, name) == value(running, name)
    if not waiting:
        assert found.config == fresh


def value(config: msgspec.Struct, name: str) -> Any:
    table, _, key = name.partition(".")
    return getattr(getattr(config, table), key) if key else getattr(config, table)


def test_a_directorys_file() -> None:
    fresh = msgspec.convert(
        {"canaries": [{"share": 0.1, "version": "2"}], "directory": {"keys": ["a"], "connections": 10}}, DirectoryConfig
    )
    found = change(DirectoryConfig(), fresh)
    assert found.taken == ("directory.keys", "canaries") and found.waiting == ("directory.connections",)


def test_what_is_told_as_used_exists() -> None:
    """A key that is renamed is not forgotten here."""
    known = {
        f"{table}.{key}"
        for config in (Config(), DirectoryConfig())
        for table in config.__struct_fields__
        if isinstance(its := getattr(config, table), msgspec.Struct)
        for key in its.__struct_fields__
    } | {*Config.__struct_fields__, *DirectoryConfig.__struct_fields__}
    assert {name for name in REREAD if not known & {name, *(name + end for end in SOURCES)}} == set()
