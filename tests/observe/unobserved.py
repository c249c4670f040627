"""`python -m tests.observe.unobserved pop ...`: voicepipe, but nobody follows its calls: what following costs."""

import sys
from typing import Any

from voicepipe.commands import cli
from voicepipe.observe import calls, dashboard


class Alone(calls.LiveCalls):
    """Without metrics, records, traces and costs."""

    def __init__(self, turns: Any, budget_ms: float, followers: Any, redaction: Any, traces: Any) -> None:
        super().__init__(turns, budget_ms, redaction=redaction)


if __name__ == "__main__":
    dashboard.LiveCalls = Alone  # type: ignore[assignment,attr-defined]
    sys.exit(cli.main())
