"""`python -m tests.gpu_engines.standins OUT.json`: the file is written after every case."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.gpu_engines.standins.cases import MOST_CALLS, chosen
from voicepipe.sizing.shapes import LLMS

BEGAN = time.monotonic()
"""Loading the libraries takes of the budget, too."""
MODELS = [name for name, shape in LLMS.items() if shape.kind in ("llama", "mistral", "qwen2", "qwen3")]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns the exit status: 0; 1: there is no recogniser; 3: the time ran out in the middle of a case."""
    cli = argparse.ArgumentParser(prog="python -m tests.gpu_engines.standins", description=__doc__)
    cli.add_argument("out", type=Path, metavar="OUT.json", help="where the figures go")
    cli.add_argument("--budget-s", type=float, default=230.0, help="of wall time, all in all (default 230)")
    cli.add_argument(
        "--only", default="", metavar="TEXT", help='cases with this in their own names, as "two processes"'
    )
    cli.add_argument(
        "--calls", type=_numbers, default=(), metavar="N,N", help="these numbers of calls in place of the cases' own"
    )
    cli.add_argument(
        "--voice", choices=("behind", "beside"),
        help="cases of two processes alone, and the replies are spoken in the recogniser's: on the GPU behind the work "
        "of the others, or first phrases beside it",
    )  # fmt: skip
    cli.add_argument(
        "--llm", choices=MODELS, default="llama-3.1-8b", metavar="NAME", help="its shape (default: %(default)s)"
    )
    cli.add_argument(
        "--llm-share", type=int, default=100, metavar="PERCENT",
        help="under CUDA MPS: of the GPU, at most, for the language model's process (default 100)",
    )  # fmt: skip
    cli.add_argument("--tiny", action="store_true", help="models of no size, on the CPU: to try this without a GPU")
    options = cli.parse_args(argv)
    if not (cases := chosen(options.only, options.calls, bool(options.voice))):
        known = "; ".join(case.name for case in chosen("", (), bool(options.voice)))
        cli.error(f"--only {options.only!r} names none of: {known}")
    import torch  # not above: a child imports this file, and needs none

    from tests.gpu_engines.standins.run import Run

    if not options.tiny and not torch.cuda.is_available():
        cli.error("torch sees no GPU here, and these models are none for a CPU: --tiny tries it, and measures nothing")
    run = Run(options.out, BEGAN, options.budget_s, options.llm, options.llm_share, tiny=options.tiny)
    return run.run(cases, voice_beside=options.voice == "beside")


def _numbers(text: str) -> list[int]:
    """Raises ArgumentTypeError."""
    if all(each.isdecimal() and 1 <= int(each) <= MOST_CALLS for each in text.split(",")):
        return [int(each) for each in text.split(",")]
    raise argparse.ArgumentTypeError(f"{text!r}: write numbers from 1 to {MOST_CALLS}, as 16,32,48")


if __name__ == "__main__":
    sys.exit(main())
