"""What the environment says."""

import os
from pathlib import Path

import pytest

from voicepipe.base import environment

NAME = "VOICEPIPE_TEST"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "set and then")
    monkeypatch.delenv(NAME)


def test_a_variable_is_read_without_the_space_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment.variable(NAME) == ""
    monkeypatch.setenv(NAME, " s3cret\n")
    assert environment.variable(NAME) == "s3cret"


def test_a_secret_is_made_up_once_and_known_to_programs() -> None:
    secret = environment.made_up(NAME)
    assert len(secret) >= 16 and environment.made_up(NAME) == os.environ[NAME] == secret
    environment.put_variable(NAME, "mine\n")
    assert environment.made_up(NAME) == "mine"


def test_defaults_leave_what_is_set() -> None:
    environment.default_variables({NAME: "one"})
    environment.default_variables({NAME: "two"})
    assert os.environ[NAME] == "one"


def test_a_program_gets_its_variables_beside_ours() -> None:
    environment.put_variable(NAME, "ours")
    assert environment.for_program({"A": "b"}) == {**os.environ, "A": "b"}
    assert environment.for_program({NAME: "its"})[NAME] == "its" != os.environ[NAME]


def test_folders_are_the_user_s_unless_they_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (environment.MODELS, "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert environment.state_directory() == tmp_path / ".local/state/voicepipe"
    assert environment.models_directory() == tmp_path / ".local/share/voicepipe/models"
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert environment.state_directory() == Path("/state/voicepipe")
    assert environment.models_directory() == Path("/data/voicepipe/models")
    monkeypatch.setenv(environment.MODELS, "~/models")
    assert environment.models_directory() == tmp_path / "models"


def test_the_loader_s_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", ":/usr/local/cuda/lib64::/opt/lib")
    assert environment.library_folders() == (Path("/usr/local/cuda/lib64"), Path("/opt/lib"))


def test_mps_runs_where_its_daemon_listens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    assert not environment.mps_runs()
    (tmp_path / "control").touch()
    assert environment.mps_runs()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins no process to a core")
def test_cores_are_those_that_this_process_may_use() -> None:
    all_cores = os.sched_getaffinity(0)
    assert environment.cores() == len(all_cores)
    os.sched_setaffinity(0, {min(all_cores)})
    try:
        assert environment.cores() == 1
    finally:
        os.sched_setaffinity(0, all_cores)
