"""A PoP's tables: the file that names all keys, what cannot be said, and how many calls it takes by itself."""

import re
import tomllib
from typing import Any

import msgspec
import pytest

from tests.config.told import problem
from tests.support.paths import ROOT
from voicepipe import config
from voicepipe.base.errors import ConfigError
from voicepipe.config import Config, TenantConfig, pop_config, toml_file
from voicepipe.config.engine_config import RecordedVoice
from voicepipe.config.phone_config import RouteConfig, SipTrunk, SipUser
from voicepipe.config.pop_config import USUAL, RedactionConfig


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({}, 6),
        ({"whisper": {"threads": 1}}, 2),
        ({"whisper": {"device": "cuda:1"}}, pop_config.ONE_PROCESS),
        ({"engines": {"asr": "scripted"}}, pop_config.ONE_PROCESS),
        ({"pop": {"slots": 7}}, 7),
    ],
)
def test_slots_are_what_the_machine_can_hear(
    tables: dict[str, object], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pop_config, "cores", lambda: 3)
    assert pop_config.with_slots(msgspec.convert(tables, Config)).pop.slots == expected


def test_default_toml_has_every_key_with_its_default() -> None:
    written = tomllib.loads((ROOT / "configs/default.toml").read_text())
    built_in = msgspec.to_builtins(Config())
    assert built_in.pop("tenants") == () == built_in.pop("routes")  # in the file as comments
    assert built_in["sip"].pop("trunks") == () == built_in["sip"].pop("users")
    assert flat(written) == flat(built_in)


def flat(tables: dict[str, Any]) -> dict[str, object]:
    """`table.key` -> value, a list for every sequence: what differs is readable in the test's output."""
    return {
        f"{table}.{key}": list(value) if isinstance(value, list | tuple) else value
        for table, keys in tables.items()
        for key, value in keys.items()
    }


def test_the_commented_tables_of_default_toml_have_every_key() -> None:
    text = (ROOT / "configs/default.toml").read_text()
    lines = re.findall(r"^# (\[\[?[\w.]+\]\]?|\w+ = .*)$", text, re.MULTILINE)
    tables = tomllib.loads("\n".join(lines))
    assert set(tables["tenants"][0]) == set(TenantConfig.__struct_fields__)
    assert set(tables["neutts"]["voices"]["anna"]) == set(RecordedVoice.__struct_fields__)
    assert set(tables["routes"][0]) == set(RouteConfig.__struct_fields__)
    assert set(tables["sip"]["trunks"][0]) == set(SipTrunk.__struct_fields__)
    assert set(tables["sip"]["users"][0]) == set(SipUser.__struct_fields__)
    written = config.parse(tables)
    assert written.tenants[0].key_env == "EXAMPLE_KEY" and written.routes[0].called == "+4930*"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('addresses = ["my.host.example"]', "addresses: 'my.host.example' is no IPv4 address"),
        ('addresses = ["0.0.0.0"]', "addresses: '0.0.0.0' is no IPv4 address of one host"),
        ('public_address = "x"', "public_address: 'x' is no IPv4 address"),
        ("first_port = 5", "first_port and last_port go together"),
        ("first_port = 9\nlast_port = 5", "the lower one first"),
        ('turn_urls = ["turn:x"]', "turn_urls and turn_secret_env go together"),
        ('turn_urls = ["http://x"]\nturn_secret_env = "A"', "'http://x' is none; give one such as turn:"),
    ],
)
def test_what_a_webrtc_table_cannot_say(write: Any, text: str, said: str) -> None:
    assert said in problem(write(f"[webrtc]\n{text}"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('endpoint = "collector:4318"', "endpoint: 'collector:4318' is none; give one such as http://127.0.0.1:4318"),
        ('endpoint = "http://h:4318/v1/traces"', "is not the base address; leave out what follows it: /v1/traces"),
        ('headers_env = "A"', "headers_env: there is no endpoint that would get them"),
        ("sample = 1.5", "traces.sample: "),
    ],
)
def test_what_a_table_of_traces_cannot_say(write: Any, text: str, said: str) -> None:
    assert said in problem(write(f"[traces]\n{text}"))


def test_a_pattern_that_cannot_be_used_is_named() -> None:
    with pytest.raises(ConfigError, match="is no regular expression") as told:
        toml_file.convert({"patterns": ["("]}, RedactionConfig, "redaction")
    assert repr("(") in str(told.value)


@pytest.mark.parametrize("pattern", ["[", "a{99999999999}", "(?P<a>", "\\"])
def test_no_pattern_is_taken_that_could_not_be_looked_for(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^patterns: .* is no regular expression"):
        RedactionConfig(patterns=(r"\d+", pattern))


def test_by_default_numbers_are_taken_out_and_words_are_kept() -> None:
    assert (USUAL.cards, USUAL.keys, USUAL.patterns, USUAL.transcripts) == (True, True, (), True)
