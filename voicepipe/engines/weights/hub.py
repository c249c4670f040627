"""A model's name -> where it is on this machine. Nothing is fetched here: that is `voicepipe models pull`."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

from voicepipe.base.errors import EngineMissing
from voicepipe.engines.weights import known_models

HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
"""org/name, as the hub has it."""
PULL = "voicepipe models pull CONFIG"
"""The command that fetches a model, for messages where the configuration's file is not known."""
VOCABULARIES = {"tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt", "spiece.model"}
WEIGHTS = (".safetensors", ".bin", ".onnx", ".gguf", ".pt", ".pth")


def local(name: str, revision: str = "", *, weights: bool = True) -> Path:
    """The directory or file of a model: `name` if there is such a path, else the folder of known models
    (known_models.py) if it is one of them, else the hub's cache on this machine.

    `revision`: branch, tag or commit of what the hub has; empty: its main branch. A path has none. `weights`: False if
    its texts are enough, as of a tokenizer.
    Raises EngineMissing: neither is there, or the cache has only a part of it.
    """
    if not name:
        raise EngineMissing("no model is named; give the path of one, or its name on the hub as org/name")
    path = Path(name).expanduser()
    if path.exists():
        return path
    known = None if revision else known_models.find(name)
    if known and not known_models.absent(known, known.directory):
        return known.directory
    if known and not known.on_hub:
        raise EngineMissing(f"{name} is not on this machine; fetch it with `{PULL}`")
    if not on_hub(name):
        raise EngineMissing(f"there is no {name!r}; give the path of a model, or its name on the hub as org/name")
    directory, called = _cached(name, revision), title(name, revision)
    if directory is None:
        raise EngineMissing(f"{called} is not on this machine; fetch it with `{PULL}`")
    if lacking := missing(directory) if weights else _no_vocabulary(directory):
        raise EngineMissing(f"{called} is on this machine without its {lacking[0]}; fetch the rest with `{PULL}`")
    return directory


def local_file(name: str, suffix: str) -> Path:
    """The file of a model that is one: `name` if it is a path, else that file of the known model of this name which
    ends in `suffix`. Raises EngineMissing."""
    path = local(name)
    known = known_models.find(name)
    if not known or not path.is_dir():
        return path
    return next((path / file.name for file in known.files if file.name.endswith(suffix)), path)


def title(name: str, revision: str) -> str:
    """A model's name, for people."""
    return f"{name} (revision {revision})" if revision else name


def copyable(said: str, config_file: Path | None) -> str:
    """What is said of missing models, with a command in it that can be copied. None: the default configuration."""
    named = PULL.replace("CONFIG", shlex.quote(str(config_file))) if config_file else PULL.removesuffix(" CONFIG")
    return said.replace(PULL, named)


def on_hub(name: str) -> bool:
    """Whether `name` can only be one of the hub's, and no path."""
    return HUB_NAME.fullmatch(name) is not None


def _no_vocabulary(directory: Path) -> list[str]:
    """What a tokenizer lacks in `directory`, as `missing` of a model."""
    return [] if any(is_vocabulary(file.name) for file in directory.iterdir()) else ["vocabulary"]


def is_vocabulary(file: str) -> bool:
    """Whether the file of this name holds a tokenizer's words. Such files are fetched last, as weights are."""
    return file in VOCABULARIES or file.endswith(".tiktoken")


def missing(directory: Path) -> list[str]:
    """Files without which the model in `directory` cannot be loaded, where the directory itself tells."""
    if spread := shards(directory):
        return sorted(shard for shard in spread if not (directory / shard).exists())
    return [] if any(file.suffix in WEIGHTS for file in directory.iterdir()) else ["weights"]


def shards(directory: Path) -> set[str]:
    """The files among which a large model's weights are spread, by its index; none if it has no index."""
    indexes = (json.loads(index.read_text()) for index in directory.glob("*.index.json"))
    return {shard for index in indexes for shard in index.get("weight_map", {}).values()}


def json_object(file: Path) -> dict[str, Any]:
    """The contents of a model's JSON file, such as config.json; empty if it is not there, or holds no JSON object."""
    try:
        said = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _cached(name: str, revision: str) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        # One file's pattern: the library would miss those of the repository that we do not fetch (missing() looks).
        patterns = ["config.json"]
        return Path(snapshot_download(name, revision=revision or None, local_files_only=True, allow_patterns=patterns))
    except LocalEntryNotFoundError:
        return None
