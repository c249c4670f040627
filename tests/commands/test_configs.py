"""`voicepipe configs`: the files that come along, by name."""

import tomllib
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from voicepipe.commands import cli, configs


def test_each_shipped_configuration_is_listed_with_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["configs", "list"]) == 0
    lines = {line.split(None, 1)[0]: line.split(None, 1)[1:] for line in capsys.readouterr().out.splitlines()[1:]}
    files = [
        path.relative_to(ROOT).as_posix() for folder in ("configs", "pops") for path in (ROOT / folder).rglob("*.toml")
    ]
    assert set(files) <= set(lines) and all(lines[name] for name in files)
    assert {"pops/alerts/voicepipe.rules.yml", "pops/dashboards/grafana/fleet.json"} <= set(lines)
    assert "pops/deploy/kubernetes/base/deletion_cost.py" in lines
    assert not [name for name in lines if name.endswith((".png", ".pyc", "build.py"))]


@pytest.mark.parametrize("name", ["gpu", "gpu.toml", "configs/gpu.toml"])
def test_a_file_is_shown_by_its_path_or_its_end(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert cli.main(["configs", "show", name]) == 0
    assert capsys.readouterr().out == (ROOT / "configs" / "gpu.toml").read_text()


def test_a_folder_is_copied_without_what_a_wheel_has_not(tmp_path: Path) -> None:
    assert configs.copy("dashboards", tmp_path) == 0
    copied = [path.name for path in (tmp_path / "dashboards").rglob("*") if path.is_file()]
    assert sorted(copied) == ["call.json", "fleet.json", "pop.json"]


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "new" / "local.toml"
    assert cli.main(["configs", "copy", "local.toml", str(mine.parent)]) == 0
    mine.write_text("mine")
    assert cli.main(["configs", "copy", "local.toml", str(mine.parent)]) == 2
    assert f"{mine} is there already" in capsys.readouterr().err and mine.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpu-24", "there is no 'gpu-24': configs/gpu-24gb.toml"),
        ("README.md", "several files are called README.md: configs/README.md"),
        ("../pyproject.toml", "there is no '../pyproject.toml' (`voicepipe configs list`"),
        ("", "there is no '' (`voicepipe"),
    ],
)
def test_a_name_that_is_none_gets_near_ones(capsys: pytest.CaptureFixture[str], name: str, said: str) -> None:
    assert cli.main(["configs", "show", name]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_cannot_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["configs", "show", "alerts"]) == 2
    assert "`voicepipe configs copy alerts`" in capsys.readouterr().err


def test_secrets_of_a_checkout_are_in_no_wheel_and_in_no_image() -> None:
    secrets = "pops/deploy/containers/secrets"
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert secrets in wheel["exclude"]
    for ignored in (ROOT / "pops" / "deploy" / "containers" / "Containerfile.dockerignore", ROOT / ".gitignore"):
        assert secrets in {line.rstrip("/") for line in ignored.read_text().splitlines()}
