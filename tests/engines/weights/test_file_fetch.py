"""A file by its address: whole or not at all, and on from where a connection broke."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_hub import FakeHub, serving
from voicepipe.base.errors import EngineMissing
from voicepipe.engines.weights.file_fetch import fetch
from voicepipe.engines.weights.hub_fetch import Unreachable

DATA = bytes(range(256)) * 1000


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with serving(FakeHub({"org/voice": {"voice.onnx": DATA}})) as running:
        yield running


def address(hub: FakeHub, name: str = "voice.onnx") -> str:
    return f"{hub.url}/org/voice/resolve/main/{name}"


def test_it_is_there_once_it_is_whole_and_it_is_told_how_much_came(hub: FakeHub, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    target = tmp_path / "new" / "voice.onnx"
    fetch(address(hub), target, lambda here, of: told.append((here, of)))
    assert target.read_bytes() == DATA and [file.name for file in target.parent.iterdir()] == ["voice.onnx"]
    assert told[-1] == (len(DATA), len(DATA))


def test_a_broken_connection_goes_on_where_it_broke(hub: FakeHub, tmp_path: Path) -> None:
    hub.breaks.add("voice.onnx")
    fetch(address(hub), tmp_path / "voice.onnx", lambda here, of: None)
    assert hub.fetched == ["voice.onnx", f"voice.onnx bytes={len(DATA) // 2}-"]
    assert (tmp_path / "voice.onnx").read_bytes() == DATA


def test_a_run_that_was_ended_goes_on_with_its_part(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "voice.onnx.part").write_bytes(DATA[:1000])
    told: list[tuple[int, int]] = []
    fetch(address(hub), tmp_path / "voice.onnx", lambda here, of: told.append((here, of)))
    assert hub.fetched == ["voice.onnx bytes=1000-"] and told[-1] == (len(DATA), len(DATA))
    assert (tmp_path / "voice.onnx").read_bytes() == DATA


def test_what_the_server_answers_is_said(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"none\.onnx cannot be fetched: its server answers 404 Not Found"):
        fetch(address(hub, "none.onnx"), tmp_path / "none.onnx", lambda here, of: None)
    assert not list(tmp_path.iterdir())


def test_a_server_that_is_not_there_says_what_to_check(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"check the network \(HTTPS_PROXY\) and run this again"):
        fetch("http://127.0.0.1:9/voice.onnx", tmp_path / "voice.onnx", lambda here, of: None)


def test_a_folder_that_is_a_file(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "voices").write_bytes(b"")
    with pytest.raises(EngineMissing, match="voices/voice.onnx cannot be written: "):
        fetch(address(hub), tmp_path / "voices" / "voice.onnx", lambda here, of: None)
