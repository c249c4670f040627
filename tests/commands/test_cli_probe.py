"""Options of `voicepipe probe`."""

from pathlib import Path

import pytest

from voicepipe.commands import cli, cli_probe
from voicepipe.config.probe_config import ProbeConfig


def config(*argv: str) -> ProbeConfig:
    return cli_probe.configuration(cli.parser().parse_args(["probe", *argv]))


def test_options_alone_say_whom_to_call() -> None:
    found = config("--url", "https://fra1.example.com:8443", "--url", "http://[::1]:8080", "--by", "websocket,sip",
                   "--agent", "clinic", "--key-env", "KEY", "--budget-ms", "300")  # fmt: skip
    assert [target.name for target in found.targets] == ["fra1.example.com-8443", "1-8080"]
    assert all((its.by, its.agent, its.key_env, its.budget_ms) == (("websocket", "sip"), "clinic", "KEY", 300)
               for its in found.targets)  # fmt: skip
    [fleet] = config("--directory", "https://voice.example.com", "--straight", "--operator-key-env", "OP").targets
    assert (fleet.directory, fleet.straight, fleet.operator_key_env) == ("https://voice.example.com", True, "OP")


def test_options_go_before_the_file(tmp_path: Path) -> None:
    (file := tmp_path / "probe.toml").write_text('[probe]\nagain_s = 9\n[[targets]]\nname = "a"\nurl = "http://x"\n')
    found = config("--config", str(file), "--every", "15", "--host", "0.0.0.0", "--port", "9000")
    assert (found.probe.every_s, found.http.host, found.http.port) == (15, "0.0.0.0", 9000)
    assert config("--config", str(file), "--every", "8").probe.again_s == 7


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ((), "probe: whom to call? Give --config FILE, --url or --directory"),
        (("--config", "probe.toml", "--url", "http://x"), "--config says whom to call"),
        (("--url", "fra1"), "targets[0].url: 'fra1' is no address"),
        (("--url", "http://x", "--every", "2"), "--every: give at least 5 seconds"),
        (("--url", "http://x", "--by", "websocket,webrtc,sip", "--every", "12"), "probe.every_s: 3 calls"),
        (("--config", "no.toml"), "no.toml: cannot be read"),
    ],
)
def test_what_does_not_go(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], says: str) -> None:
    assert cli.main(["probe", *argv]) == 2
    assert says in capsys.readouterr().err


def test_an_unknown_door(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["probe", "--by", "fax"])
    assert "'fax' is no door: give some of websocket,webrtc,sip" in capsys.readouterr().err
