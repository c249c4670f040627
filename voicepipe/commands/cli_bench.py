"""`voicepipe bench`: its parts, their options, and what they run."""

import argparse
from pathlib import Path


def add(bench: argparse.ArgumentParser) -> None:
    """Its parts and their options."""
    parts = bench.add_subparsers(title="parts", required=True, metavar="PART")
    media = parts.add_parser("media", help="a call's media: by WebRTC, beside stock aiortc, and by phone")
    media.add_argument("--calls", type=int, default=10, help="at a time (default 10)")
    media.add_argument("--seconds", type=float, default=15, help="measured, of each (default 15)")
    media.add_argument("--runs", type=_many, default=1, help="so many times: the ratio to aiortc is their median")
    _add_json(media)
    media.set_defaults(run=_bench_media)
    network = parts.add_parser("network", help="what jitter and loss do to a caller's sound, in virtual time")
    _add_json(network)
    network.set_defaults(run=_bench_network)
    whisper = parts.add_parser("whisper", help="how soon small Whispers have the words on this CPU; nothing is fetched")
    _add_json(whisper)
    whisper.set_defaults(run=_bench_whisper)
    nemotron = parts.add_parser(
        "nemotron", help="what the streaming recogniser takes on this device; nothing is fetched"
    )
    nemotron.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")
    nemotron.add_argument("--tiny", action="store_true", help="a trial, with a small model")
    _add_json(nemotron)
    nemotron.set_defaults(run=_bench_nemotron)
    sip = parts.add_parser("sip", help="calls by SIP, 30 and 50 a second; needs sipp")
    _add_json(sip)
    sip.set_defaults(run=_bench_sip)

    _add_bench_directory(parts.add_parser("directory", help="how soon a directory answers, and how well it chooses"))
    _add_engines(
        parts.add_parser(
            "engines",
            help="turns on this device, by a configuration's engines or by models of true shape with random weights",
        )
    )


def _add_bench_directory(directory: argparse.ArgumentParser) -> None:
    parts = directory.add_subparsers(title="parts", required=True, metavar="PART")
    resolve = parts.add_parser("resolve", help="how soon it says where to call, with 50 PoPs")
    resolve.add_argument("--rate", type=_many, default=200, help="requests a second (default 200)")
    resolve.add_argument("--seconds", type=_many, default=30, help="so long (default 30)")
    resolve.add_argument("--forwarded", action="store_true", help="each request from another address, as by a proxy")
    _add_json(resolve)
    resolve.set_defaults(run=_bench_resolve)
    setup = parts.add_parser("setup", help="calls asked for and relayed, beside calls straight to the PoP")
    setup.add_argument("--calls", type=_many, default=100, help="of each way (default 100)")
    _add_json(setup)
    setup.set_defaults(run=_bench_setup)
    placement = parts.add_parser("placement", help="calls from 20 cities to nine PoPs, with round trips on the wire")
    placement.add_argument("--calls", type=_many, default=300, help="in all, ten at a time (default 300)")
    placement.add_argument("--slots", type=_many, default=4, help="of each PoP (default 4: few enough that some fill)")
    _add_json(placement)
    placement.set_defaults(run=_bench_placement)


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


def _bench_media(args: argparse.Namespace) -> int:
    from voicepipe.bench import media
    from voicepipe.commands import runtime

    return runtime.run(media.run(args.calls, args.seconds, args.runs, args.json))


def _bench_network(args: argparse.Namespace) -> int:
    from voicepipe.bench import network

    return network.run(args.json)


def _bench_whisper(args: argparse.Namespace) -> int:
    from voicepipe.bench import whisper

    return whisper.run(args.json)


def _bench_nemotron(args: argparse.Namespace) -> int:
    from voicepipe.bench import nemotron

    return nemotron.run(args.json, args.device, tiny=args.tiny)


def _bench_sip(args: argparse.Namespace) -> int:
    from voicepipe.bench import sip
    from voicepipe.commands import runtime

    return runtime.run(sip.run(args.json))


def _bench_resolve(args: argparse.Namespace) -> int:
    from voicepipe.bench.directory import resolve
    from voicepipe.commands import runtime

    return runtime.run(resolve.run(args.rate, args.seconds, args.json, forwarded=args.forwarded))


def _bench_setup(args: argparse.Namespace) -> int:
    from voicepipe.bench.directory import setup
    from voicepipe.commands import runtime

    return runtime.run(setup.run(args.calls, args.json))


def _bench_placement(args: argparse.Namespace) -> int:
    from voicepipe.bench.directory import placement
    from voicepipe.commands import runtime

    return runtime.run(placement.run(args.calls, args.slots, args.json))


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
