"""`python -m tests.observe.unobserved pop ...`: voicepipe, but nobody follows its calls: what following costs."""

import sys
from functools import partial
from typing import Any

from voicepipe.commands import cli
from voicepipe.observe import calls, dashboard
from voicepipe.observe.call_followers import UNTRACED


class Alone(calls.LiveCalls):
    """Without metrics, records, traces and costs."""

    def __init__(self, make: Any) -> None:
        super().__init__(partial(make, followers=(), traces=UNTRACED))


if __name__ == "__main__":
    dashboard.LiveCalls = Alone  # type: ignore[attr-defined]
    sys.exit(cli.main())
