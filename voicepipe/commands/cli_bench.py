"""`voicepipe bench`: its part, the options, and what they run."""

import argparse
from pathlib import Path


def add(bench: argparse.ArgumentParser) -> None:
    """Add the command with its options."""
    parts = bench.add_subparsers(title="parts", required=True, metavar="PART")
    engines = parts.add_parser("engines", help="what a turn costs on this machine, with a configuration's engines")
    engines.add_argument(
        "--config", type=Path, metavar="FILE", help="its engines, loaded as by a PoP (default: the built-in defaults)"
    )
    engines.add_argument(
        "--shape", default="", metavar="NAME",
        help="in place of its language model: vLLM with random weights of this shape, as llama-3.1-8b, which need not "
        "be fetched",
    )  # fmt: skip
    engines.add_argument("--calls", type=_counts, default=(1, 8, 32), metavar="N,N", help="at a time (default: 1,8,32)")
    engines.add_argument("--seconds", type=float, default=30.0, help="measured, of each column (default: %(default)g)")
    engines.add_argument("--rounds", type=_many, default=3, help="in which they are spent (default: %(default)s)")
    engines.add_argument(
        "--gaps", choices=("both", "real", "none"), default="both",
        help="with idle gaps between turns as in calls, cut short, or first the one and then the other (default)",
    )  # fmt: skip
    engines.add_argument("--budget-ms", type=float, default=300.0, help="a later turn is late (default: %(default)g)")
    engines.add_argument("--seed", type=int, default=1, help="of the load (default: 1)")
    engines.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")
    engines.add_argument("--table", action="store_true", help="print the table in Markdown")
    engines.set_defaults(run=_bench_engines)


def _many(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 100000")
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    counts = text.split(",")
    if not all(count.isdecimal() and 0 < int(count) <= 1024 for count in counts):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give numbers from 1 to 1024 with commas between them, as in 1,8,32"
        )
    return tuple(int(count) for count in counts)


def _bench_engines(args: argparse.Namespace) -> int:
    from voicepipe.bench import run
    from voicepipe.bench.measure import BenchOptions
    from voicepipe.serving import runtime

    options = BenchOptions(
        config=args.config,
        shape=args.shape,
        calls=args.calls,
        seconds=args.seconds,
        rounds=args.rounds,
        kinds={"both": (True, False), "real": (True,), "none": (False,)}[args.gaps],
        budget_ms=args.budget_ms,
        seed=args.seed,
    )
    return runtime.run(run.run(options, args.json, markdown=args.table))
