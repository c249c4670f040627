"""What a file is for is read from its folder and its keys."""

import tomllib
from pathlib import Path

import pytest

from voicepipe.base.errors import ConfigError
from voicepipe.config.file_kind import Kind, check_kind, kind_of


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.toml", "", "configuration"),
        ("a.toml", "[http]\nport = 8080", "configuration"),
        ("a.toml", "[http]\nport = 8080\n[directory]", "directory"),
        ("a.toml", "[http]\nport = 8080\n[directory]\n[pop]\n[sip]", "configuration"),
        ("a.toml", "name = 'fra1'\n[pop]", "configuration"),
        ("a.toml", "name = 'clinic'", "agent"),
        ("a.toml", "name = 'clinic'\ngreeting = 'Hello.'\n[turn]", "agent"),
        ("a.toml", "name = 'clinic'\n[[intents]]", "agent"),
        ("a.toml", "[[intents]]", "intents"),
        ("pops/a.toml", "name = 'fra1'\n[http]", "manifest"),
        ("pops/a.toml", "[directory]\n[http]", "directory"),
        ("agents/a.toml", "[pop]", "agent"),
        ("intents/a.toml", "name = 'clinic'", "intents"),
        ("fleet.toml", "[[routes]]", "rules"),
        ("a.toml", "[[routes]]", "configuration"),
    ],
)
def test_the_kind_of_a_file(tmp_path: Path, name: str, text: str, kind: Kind) -> None:
    assert kind_of(tmp_path / name, tomllib.loads(text)) == kind


@pytest.mark.parametrize(
    ("wanted", "text", "said"),
    [
        ("configuration", "[http]\n[directory]", "directory: this file is a directory's configuration"),
        ("configuration", "greeting = 'Hello.'", "greeting: this file is an agent"),
        ("configuration", "[[intents]]", "intents: this file holds intents"),
        ("directory", "[http]\n[pop]", "pop: this file is a PoP's configuration"),
        ("agent", "[http]\n[directory]", "http: this file is a directory's configuration"),
    ],
)
def test_a_file_of_another_kind_is_told_by_a_key_that_shows_it(wanted: Kind, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"^a.toml: {said}"):
        check_kind(Path("a.toml"), tomllib.loads(text), wanted)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("configuration", "name = 'fra1'\n[http]"),
        ("configuration", "[turns]"),
        ("directory", "[directry]\n[http]"),
        ("directory", "[directory]\n[pop]"),
        ("agent", "name = 'clinic'\n[http]\n[turn]"),
        ("agent", "nmae = 'clinic'\n[[intents]]"),
    ],
)
def test_a_wrong_key_makes_no_other_kind(wanted: Kind, text: str) -> None:
    check_kind(Path("a.toml"), tomllib.loads(text), wanted)
