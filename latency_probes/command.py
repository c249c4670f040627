"""What the commands here share: options, and how a command ends."""

import argparse
import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from voicepipe.base.errors import VoicepipeError

T = TypeVar("T")
FAILED, STOPPED = 2, 130
"""Exit statuses: nothing was measured; Ctrl-C, as shells have it."""


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def add_json(cli: argparse.ArgumentParser) -> None:
    cli.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")


def stoppable(job: Coroutine[Any, Any, T]) -> T:
    """Run `job`, which Ctrl-C or SIGTERM (as of `timeout`) cancels once; its result."""

    async def run() -> T:
        task = asyncio.current_task()
        assert task
        # Ctrl-C is cancelled by asyncio itself. Only the main thread gets signals.
        if threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await job

    return asyncio.run(run())


def status(command: Callable[[], int]) -> int:
    """Run a command; its exit status. What keeps it from measuring is said."""
    try:
        return command()
    except VoicepipeError as error:
        print(error, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return STOPPED
