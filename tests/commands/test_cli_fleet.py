"""What does not go together on the command lines that ask a directory."""

import pytest

from voicepipe.commands.cli import main


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("agents", "--list"),
        ("agents", "--version", "3"),
        ("--version", "3", "--list"),
        ("--list", "--check"),
        ("--version", "3", "--with", "fleet.toml"),
        ("agents", "--with", "fleet.toml", "--own-rules"),
    ],
)
def test_a_push_is_one_thing_at_a_time(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]) -> None:
    assert main(["push", *argv]) == 2
    assert "push: give one of the three: a folder with agents' files" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [("pops",), ("drain", "fra1"), ("push", "--list")])
def test_a_directory_is_asked_with_a_key_from_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    assert main([*argv, "--directory", "http://127.0.0.1:9", "--key-env", "MY_KEY"]) == 2
    assert capsys.readouterr().err
