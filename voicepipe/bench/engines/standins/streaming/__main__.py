"""`python3 -m voicepipe.bench.engines.standins.streaming OUT.json`: the file is written after every case."""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from voicepipe.bench.engines.standins.streaming.cases import CASES

BEGAN = time.monotonic()
"""Loading the libraries takes of the budget, too."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns the exit status: 0; 1: there is no recogniser; 3: the time ran out in the middle of a case."""
    cli = argparse.ArgumentParser(prog="python3 -m voicepipe.bench.engines.standins.streaming", description=__doc__)
    cli.add_argument("out", type=Path, metavar="OUT.json", help="where the figures go")
    cli.add_argument("--budget-s", type=float, default=230.0, help="of wall time, all in all (default 230)")
    cli.add_argument("--only", default="", metavar="TEXT", help='cases with this in their names, as "two processes"')
    cli.add_argument(
        "--llm-share", type=int, default=100, metavar="PERCENT",
        help="under CUDA MPS: of the GPU, at most, for the language model's process (default 100)",
    )  # fmt: skip
    cli.add_argument("--tiny", action="store_true", help="a model of no size: to try this without a GPU")
    options = cli.parse_args(argv)
    if not (cases := [case for case in CASES if re.search(rf"\b{re.escape(options.only)}", case.name)]):
        cli.error(f"--only {options.only!r} names none of: {'; '.join(case.name for case in CASES)}")
    from voicepipe.bench.engines.standins.streaming.run import Run  # the child imports this file, and needs it not

    return Run(options.out, BEGAN, options.budget_s, options.tiny, cases, options.llm_share).run()


if __name__ == "__main__":
    sys.exit(main())
