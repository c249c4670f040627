"""`python -m tests.observe.timed FILE pop ...`: voicepipe, which writes into FILE at its end how many processor seconds
of the event loop those took who follow its calls."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from voicepipe.commands import cli
from voicepipe.observe.calls import LiveCall

took_s = 0.0


def timed(method: Callable[..., Any]) -> Callable[..., Any]:
    def around(*args: Any) -> Any:
        global took_s
        before = time.thread_time()
        try:
            return method(*args)
        finally:
            took_s += time.thread_time() - before

    return around


if __name__ == "__main__":
    file = Path(sys.argv.pop(1))
    for name in ("answered", "note", "ended", "left"):
        setattr(LiveCall, name, timed(getattr(LiveCall, name)))
    status = cli.main()
    file.write_text(f"{took_s}")
    sys.exit(status)
