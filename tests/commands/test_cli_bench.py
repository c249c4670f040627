"""Options of `voicepipe bench engines`."""

import pytest

from voicepipe.commands.cli import main


@pytest.mark.parametrize("calls", ["", "0", "1,", "many"])
def test_numbers_of_calls(calls: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "engines", "--calls", calls])
    assert "as in 1,8,32" in capsys.readouterr().err
