"""Secrets are read from a variable or a file, anew each time."""

import re
from pathlib import Path

import pytest

from voicepipe.base.ranges import Section
from voicepipe.base.secret_source import SecretMissing, SecretPair, SecretSource, check_pairs


class Table(Section, frozen=True):
    key_env: str = ""
    key_file: str = ""
    key = SecretPair()

    def __post_init__(self) -> None:
        check_pairs(self)


class NeedyTable(Table, frozen=True):
    def __post_init__(self) -> None:
        check_pairs(self, "key")


def test_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Table(key_env="VOICEPIPE_TEST_A").key
    monkeypatch.setenv("VOICEPIPE_TEST_A", " sesame\n")
    assert source and source.read() == "sesame" and source.key_at("a.key") == "a.key_env"
    monkeypatch.setenv("VOICEPIPE_TEST_A", "")
    with pytest.raises(SecretMissing, match="the environment variable VOICEPIPE_TEST_A is not set here, or empty"):
        source.read()


def test_a_file_is_read_anew(tmp_path: Path) -> None:
    (file := tmp_path / "key").write_text("sesame\n")
    source = Table(key_file=str(file)).key
    assert source and source.read() == "sesame" and source.key_at("a.key") == "a.key_file"
    file.write_bytes(b"open\r\n")
    assert source.read() == "open"


def test_no_secret_is_needed() -> None:
    assert not Table().key and Table().key.read() == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is empty"), (b" \n", "is empty"), (b"a\nb\n", "holds several lines, and a secret is one"),
     (b"\xff\xfe", "holds no text")],
)  # fmt: skip
def test_a_file_without_a_secret(tmp_path: Path, content: bytes, said: str) -> None:
    (file := tmp_path / "key").write_bytes(content)
    with pytest.raises(SecretMissing, match=f"^{file} {said}$"):
        SecretSource(file=str(file)).read()


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SecretMissing, match=f"^there is no {tmp_path}/gone$"):
        SecretSource(file=str(tmp_path / "gone")).read()
    with pytest.raises(SecretMissing, match=rf"^{tmp_path} cannot be read \(Is a directory\)$"):
        SecretSource(file=str(tmp_path)).read()


def test_outside_of_its_unit_a_service_has_no_credentials() -> None:
    said = re.escape("there is no $CREDENTIALS_DIRECTORY/key, since systemd alone sets CREDENTIALS_DIRECTORY")
    with pytest.raises(SecretMissing, match=said):
        SecretSource(file="$CREDENTIALS_DIRECTORY/key").read()


def test_a_pair_names_one_source() -> None:
    with pytest.raises(ValueError, match="^key_file: key_env names a variable already; leave one of the two out$"):
        Table(key_env="A", key_file="/a")
    with pytest.raises(ValueError, match="^key_env: is missing; name the variable"):
        NeedyTable()
    assert NeedyTable(key_file="/a").key.file == "/a"


@pytest.mark.parametrize("source", [SecretSource("A"), SecretSource(file="/a"), SecretSource()])
def test_a_source_is_kept_as_a_text(source: SecretSource) -> None:
    assert SecretSource.of_text(source.text) == source
