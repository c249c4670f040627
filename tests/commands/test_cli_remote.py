"""What does not go together on the command lines that ask a directory or a PoP."""

from pathlib import Path

import pytest

from voicepipe.commands.cli import main

NOWHERE = ("records", "--url", "http://127.0.0.1:9")


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


@pytest.mark.parametrize("argv", [("pops", "--directory"), ("records", "--url")])
def test_the_files_of_a_key_and_of_authorities_have_to_be_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, argv: tuple[str, ...]
) -> None:
    gone, asked = str(tmp_path / "gone"), (*argv, "https://127.0.0.1:9")
    assert main([*asked, "--key-file", gone]) == 2
    assert f"--key-file: there is no {gone}" in capsys.readouterr().err
    assert main([*asked, "--ca", gone]) == 2
    assert f"--ca: {gone} cannot be read (No such file or directory); give a file" in capsys.readouterr().err
    (tmp_path / "gone").write_text("sesame")
    assert main([*asked, "--ca", gone]) == 2
    assert f"--ca: {gone} holds no certificate" in capsys.readouterr().err


def test_a_key_is_in_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pops", "--key-env", "A", "--key-file", "a"])
    assert "not allowed with argument --key-env" in capsys.readouterr().err


@pytest.mark.parametrize("what", [("--delete", "rtc_1"), ("--delete-caller", "+4930123456"), ("--delete-all",)])
@pytest.mark.parametrize("more", ["--agent", "--caller", "--reason"])
def test_no_other_choice_of_calls_goes_with_deleting(
    capsys: pytest.CaptureFixture[str], what: tuple[str, ...], more: str
) -> None:
    assert main([*NOWHERE, *what, more, "1h"]) == 2
    assert "--delete goes with no other choice of calls" in capsys.readouterr().err


@pytest.mark.parametrize("more", ["--since", "--until", "--tenant"])
def test_one_call_is_chosen_by_its_id_alone(capsys: pytest.CaptureFixture[str], more: str) -> None:
    assert main([*NOWHERE, "--delete", "rtc_1", more, "1h"]) == 2
    assert "--delete goes with no other choice of calls" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("what", "said"),
    [(("--delete-all",), "say which calls"), (("--delete-caller", " ", "--tenant", "acme"), "give the whole number")],
)
def test_all_calls_are_never_meant(capsys: pytest.CaptureFixture[str], what: tuple[str, ...], said: str) -> None:
    assert main([*NOWHERE, *what]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("argv", [("rtc_1", "--costs", "agent"), ("--delete", "a", "--delete-caller", "+49")])
def test_one_thing_is_asked_at_a_time(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        main([*NOWHERE, *argv])
    assert "not allowed with argument" in capsys.readouterr().err
