"""`voicepipe plan`, and what it says."""

import pytest

from voicepipe.commands import cli


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.main(["plan", *argv])
    return status, *capsys.readouterr()


def unwrapped(out: str) -> str:
    """One line, whatever the terminal's width."""
    return " ".join(out.split())


SHORT = ("--first-phrase", "short")
PRICED = ("--model", "qwen3-8b", "--gpus", "H100", "--price", "2.5")
