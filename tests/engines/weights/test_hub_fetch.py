"""Which files of a repository are fetched, and whether there is room for them."""

import shutil
from pathlib import Path

import pytest

from voicepipe.base.errors import EngineMissing
from voicepipe.engines.weights.hub_fetch import RESERVE_BYTES, WantedModel, check_room, needed

TEXTS = ["README.md", "config.json", "tokenizer.json"]


@pytest.mark.parametrize(
    ("weights", "chosen"),
    [
        (["model.safetensors", "pytorch_model.bin", "own.nemo"], ["model.safetensors"]),
        (["model-1.safetensors", "model-2.safetensors", "consolidated.safetensors"],
         ["model-1.safetensors", "model-2.safetensors"]),
        (["consolidated.safetensors", "model.bin"], ["consolidated.safetensors"]),
        (["pytorch_model.bin", "training_args.bin"], ["pytorch_model.bin"]),
        (["onnx/model.bin", "voice.pth"], ["voice.pth"]),
        (["weights.gguf"], []),
    ],
)  # fmt: skip
def test_of_several_formats_the_best_is_fetched_after_the_texts(weights: list[str], chosen: list[str]) -> None:
    assert needed([*weights, *TEXTS]) == ["config.json", "tokenizer.json", *chosen]


def test_an_index_is_fetched_with_the_weights_that_it_lists() -> None:
    paths = ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin.index.json"]
    assert needed(paths) == ["model.safetensors.index.json", "model.safetensors"]


def test_of_a_tokenizer_no_weights_are_fetched() -> None:
    assert needed(["model.safetensors", *TEXTS], weights=False) == ["config.json", "tokenizer.json"]


def test_what_is_here_already_is_not_counted() -> None:
    files = {"config.json": 10, "model.safetensors": 1000}
    wanted = WantedModel("org/name", "v2", files, frozenset({"model.safetensors"}))
    assert (wanted.to_fetch, wanted.title) == (1000, "org/name (revision v2)")


def test_a_gigabyte_stays_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=RESERVE_BYTES + 100)
    asked: list[Path] = []

    def disk(path: Path) -> object:
        asked.append(path)
        return usage

    monkeypatch.setattr(shutil, "disk_usage", disk)
    check_room(tmp_path / "not" / "made", "the models need", 100, "make room")
    assert asked == [tmp_path], "the disk that the folder will be on"
    with pytest.raises(EngineMissing, match=r"the models need 0\.0 GB, and .* has 1\.1 left, .*; make room"):
        check_room(tmp_path, "the models need", 101, "make room")
