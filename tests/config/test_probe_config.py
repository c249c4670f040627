"""A probe's configuration."""

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.paths import ROOT
from voicepipe.base.errors import ConfigError
from voicepipe.commands import cli
from voicepipe.config import load_probe
from voicepipe.config.probe_config import ProbeConfig, ProbedConfig

SHIPPED = ROOT / "configs" / "probe.toml"
TARGET = '[[targets]]\nname = "a"\nurl = "http://x"\n'


def test_the_shipped_file_has_every_key_with_its_default() -> None:
    assert load_probe(SHIPPED) == ProbeConfig()
    written = tomllib.loads(SHIPPED.read_text())
    for table, keys in msgspec.to_builtins(ProbeConfig(), str_keys=True).items():
        assert table == "targets" or written[table] == keys
    commented = tomllib.loads("\n".join(re.findall(r"^# (\[\[.+|[a-z_]+ = .+)$", SHIPPED.read_text(), re.MULTILINE)))
    pop, directory = commented["targets"]
    assert set(pop) | set(directory) == set(ProbedConfig.__struct_fields__)
    for target in (pop, directory):
        msgspec.convert(target, ProbedConfig)
    defaults: dict[str, Any] = msgspec.to_builtins(ProbedConfig(name="x", url="http://x"))
    told = pop | directory
    for key in set(defaults) - {"name", "url", "directory", "by"}:
        assert told[key] == (list(defaults[key]) if isinstance(defaults[key], tuple) else defaults[key]), key


def test_paths_are_relative_to_the_file(write: Any) -> None:
    file = write(f'{TARGET}key_file = "key"\nquestion = "q.wav"\n', "probe.toml")
    (file.parent / "q.wav").touch()
    [target] = load_probe(file).targets
    assert (target.key_file, target.question) == (str(file.parent / "key"), str(file.parent / "q.wav"))
    [target] = load_probe(write(f'{TARGET}key_file = "$CREDENTIALS_DIRECTORY/key"\n', "probe.toml")).targets
    assert target.key_file == "$CREDENTIALS_DIRECTORY/key"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[targets]]\nname = "a"\n', "targets[0].url: give it for a PoP, or directory"),
        (f'{TARGET}directory = "http://y"\n', "targets[0].url: give it for a PoP, or directory"),
        (f"{TARGET}straight = true\n", "targets[0].straight: calls the PoPs of a directory"),
        (f'{TARGET}by = ["fax"]\n', 'targets[0].by[0]: cannot be "fax"; allowed: "sip", "webrtc", "websocket"'),
        (f"{TARGET}by = []\n", "targets[0].by: give at least one"),
        (f'{TARGET}user = "x"\n', "targets[0].user: a SIP user has a password"),
        (f'{TARGET}key_env = "A"\nkey_file = "b"\n', "targets[0].key_file: key_env names a variable already"),
        (f'{TARGET}expect = ["("]\n', "targets[0].expect: '(' is no regular expression"),
        ('[[targets]]\nname = "a"\nurl = "fra1:8080"\n', "targets[0].url: 'fra1:8080' is no address"),
        (TARGET + TARGET, "targets: two are named a"),
        (f"[probe]\nagain_s = 60\n{TARGET}", "probe.again_s: is for a sooner call after a failure"),
        (f"[probe]\nevery_s = 20\ncalls = 1\n{TARGET}by = ['sip', 'webrtc']\n", "probe.every_s: 2 calls of some 12 s"),
        ("[pop]\nid = 'x'\n[[targets]]\n", "pop: "),
    ],
)
def test_what_is_wrong(write: Any, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_probe(file := write(text, "probe.toml"))
    assert str(caught.value).startswith(f"{file}: {says}")


def test_check_knows_it(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file: Path = write(f'{TARGET}key_env = "NOT_SET_ANYWHERE"\n', "probe.toml")
    assert cli.main(["check", "--strict", str(file)]) == 1
    said = capsys.readouterr().out
    assert "the environment variable NOT_SET_ANYWHERE is not set here" in said and "probe.toml: ok (probe)" in said
    assert cli.main(["check", "--strict", str(SHIPPED)]) == 1
    assert "add a [[targets]] table" in capsys.readouterr().out
