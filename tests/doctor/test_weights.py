"""Doctor's rows on models that are known file by file."""

from pathlib import Path

import pytest

from tests.support.known_wheels import known, sha256, wheel
from voicepipe.base import environment
from voicepipe.config import Config
from voicepipe.config.engine_config import EnginesConfig, WhisperConfig
from voicepipe.doctor import weights
from voicepipe.engines.weights import known_models

NAME, FILES = "org/known", {"config.json": b"{}", "model.bin": b"weights"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the model's files are."""
    monkeypatch.setenv(environment.MODELS, str(tmp_path))
    carrier = wheel(tmp_path / "index", "carrier", {})
    monkeypatch.setattr(known_models, "KNOWN", {NAME: known(NAME, FILES, [(carrier, "data/model.bin")])})
    (tmp_path / "known").mkdir()
    for name, data in FILES.items():
        (tmp_path / "known" / name).write_bytes(data)
    return tmp_path / "known"


CONFIG = Config(engines=EnginesConfig(asr="whisper"), whisper=WhisperConfig(model=NAME))


def test_what_was_published_is_well(folder: Path) -> None:
    (finding,) = weights.findings(CONFIG, Path("my.toml"))
    assert (finding.what, finding.state) == ("model", "ok")
    assert finding.detail == f"{NAME} (0 MB, MIT) in {folder}, as it was published"


def test_what_was_changed_is_broken_and_both_hashes_are_named(folder: Path) -> None:
    (folder / "model.bin").write_bytes(b"Weights")
    (finding,) = weights.findings(CONFIG, Path("my.toml"))
    assert finding.state == "broken"
    assert f"model.bin has the SHA-256 {sha256(b'Weights')}, not {sha256(b'weights')}" in finding.detail
    assert finding.way_out == f"fetch it again with `voicepipe models pull {NAME}`"


def test_what_is_missing_is_broken_for_a_pop_and_fetched_by_the_demo(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "model.bin").unlink()
    (finding,) = weights.findings(CONFIG, Path("my.toml"))
    assert (finding.state, finding.way_out) == ("broken", f"fetch it with `voicepipe models pull {NAME}`")
    monkeypatch.setattr(weights, "load", lambda: CONFIG)
    (finding,) = weights.findings(None, None)
    assert (finding.state, finding.detail) == ("note", f"{NAME} (0 MB, MIT) is not here yet")


def test_other_models_have_no_row_here(folder: Path) -> None:
    other = Config(engines=EnginesConfig(asr="whisper"), whisper=WhisperConfig(model="org/other"))
    assert list(weights.findings(other, Path("my.toml"))) == []
