"""What does not go together on the command line of `voicepipe records`."""

import pytest

from voicepipe.commands.cli import main

NOWHERE = ("records", "--url", "http://127.0.0.1:9")


@pytest.mark.parametrize("what", [("--delete", "rtc_1"), ("--delete-caller", "+4930123456")])
@pytest.mark.parametrize("more", ["--since", "--until", "--agent", "--caller", "--reason"])
def test_no_choice_of_calls_goes_with_deleting(
    capsys: pytest.CaptureFixture[str], what: tuple[str, str], more: str
) -> None:
    assert main([*NOWHERE, *what, more, "1h"]) == 2
    assert "--delete and --delete-caller go with no other choice of calls: leave it out" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [("rtc_1", "--costs", "agent"), ("--delete", "a", "--delete-caller", "+49")])
def test_one_thing_is_asked_at_a_time(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        main([*NOWHERE, *argv])
    assert "not allowed with argument" in capsys.readouterr().err
