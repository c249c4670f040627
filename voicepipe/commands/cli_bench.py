"""`voicepipe bench`: its parts, their options, and what they run."""

import argparse
from pathlib import Path


def add(bench: argparse.ArgumentParser) -> None:
    """Its parts and their options."""
    parts = bench.add_subparsers(title="parts", required=True, metavar="PART")
    _add_engines(
        parts.add_parser(
            "engines",
            help="turns on this device, by a configuration's engines or by models of true shape with random weights",
        )
    )


def _add_engines(engines: argparse.ArgumentParser) -> None:
    engines.add_argument(
        "--config", type=Path, metavar="FILE",
        help="measure the engines of this configuration, as a PoP loads them, in place of shapes",
    )  # fmt: skip
    engines.add_argument(
        "--shape",
        default="llama-3.1-8b",
        metavar="NAME",
        help="language model (default: %(default)s)",
    )
    engines.add_argument(
        "--tiny", dest="shape", action="store_const", const="tiny", help="a trial, with less of everything"
    )
    engines.add_argument(
        "--asr-shape", metavar="NAME", help="Whisper's size (default: large-v3-turbo; tiny in a trial)"
    )
    engines.add_argument("--tts-shape", metavar="NAME", help="speech synthesis (default: kokoro-82m)")
    engines.add_argument("--calls", type=_counts, metavar="N,N", help="at a time (default: 1,8,32)")
    engines.add_argument("--seconds", type=float, help="measured, of each column (default: 30)")
    engines.add_argument("--rounds", type=_many, help="in which they are spent (default: 3)")
    engines.add_argument(
        "--gaps", choices=("both", "real", "none"), default="both",
        help="with idle gaps between turns as in calls, cut short, or first the one and then the other (default)",
    )  # fmt: skip
    engines.add_argument("--budget-ms", type=float, default=300.0, help="a later turn is late (default: %(default)g)")
    engines.add_argument("--asr-window", type=int, metavar="SECONDS", help="that Whisper hears in a pass (default: 10)")
    engines.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")
    engines.add_argument("--stand-ins", action="store_true", help="stand-ins in torch also for what is installed")
    engines.add_argument("--seed", type=int, default=1, help="of the load (default: 1)")
    _add_json(engines)
    engines.add_argument("--table", action="store_true", help="print the table in Markdown")
    engines.set_defaults(run=_bench_engines)


def _add_json(part: argparse.ArgumentParser) -> None:
    part.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")


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
    from voicepipe.bench.engines import run
    from voicepipe.bench.engines.chosen import Options

    trial = args.shape == "tiny"
    options = Options(
        llm=args.shape,
        asr=args.asr_shape or ("tiny" if trial else "large-v3-turbo"),
        tts=args.tts_shape or ("tiny" if trial else "kokoro-82m"),
        calls=args.calls or ((1, 2) if trial else (1, 8, 32)),
        seconds=(8.0 if trial else 30.0) if args.seconds is None else args.seconds,
        window_s=(3 if trial else 10) if args.asr_window is None else args.asr_window,
        device=args.device,
        standins=args.stand_ins,
        seed=args.seed,
        config=args.config,
        rounds=args.rounds or (2 if trial else 3),
        kinds={"both": (True, False), "real": (True,), "none": (False,)}[args.gaps],
        budget_ms=args.budget_ms,
    )
    return run.run(options, args.json, args.table)
