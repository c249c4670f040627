"""What is said about a wrong configuration."""

from pathlib import Path

import pytest

from voicepipe import config
from voicepipe.base.errors import ConfigError


def problem(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


def told(file: Path) -> list[str]:
    """The keys that are told as wrong, in order."""
    return [line.removeprefix(f"{file}: ").partition(": ")[0] for line in f"{file}: {problem(file)}".splitlines()]
