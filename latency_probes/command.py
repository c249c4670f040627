"""What the commands here share: options, and how a command ends."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from voicepipe.errors import VoicepipeError

FAILED, STOPPED = 2, 130
"""Exit statuses: nothing was measured; Ctrl-C, as shells have it."""


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def add_json(cli: argparse.ArgumentParser) -> None:
    cli.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")


def status(command: Callable[[], int]) -> int:
    """Run a command; its exit status. What keeps it from measuring is said."""
    try:
        return command()
    except VoicepipeError as error:
        print(error, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return STOPPED
