"""The table of known models, and where they lie."""

from pathlib import Path

import pytest

from voicepipe.base import environment
from voicepipe.engines.weights import known_models


def test_two_models_of_the_table_never_lie_in_one_folder() -> None:
    directories = [model.directory for model in known_models.MODELS]
    assert len(set(directories)) == len(directories)


@pytest.mark.parametrize(
    ("variables", "where"),
    [
        ({"VOICEPIPE_MODELS": "/srv/models", "XDG_DATA_HOME": "/data"}, "/srv/models"),
        ({"XDG_DATA_HOME": "/data"}, "/data/voicepipe/models"),
        ({"HOME": "/anna"}, "/anna/.local/share/voicepipe/models"),
    ],
)
def test_where_models_lie(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], where: str) -> None:
    for name in ("VOICEPIPE_MODELS", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert environment.models_directory() == Path(where)


def test_the_tables_rows_are_whole() -> None:

    for model in known_models.MODELS:
        for file in model.files:
            assert len(file.sha256) == 64 and file.size > 0
            assert all(len(carrier.sha256) == 64 and carrier.size > 0 for carrier, _ in file.parts)
