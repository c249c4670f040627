"""The command line: argv -> configuration -> run. What a command needs is imported by that command alone."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from voicepipe import __version__
from voicepipe.errors import ConfigError, EngineMissing, VoicepipeError
from voicepipe.log import LOG_LEVELS, log_from

if TYPE_CHECKING:
    from voicepipe.config import Config


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit status: 0 well, 1 the command's own bad news, 2 a usage or configuration error."""
    args = parser().parse_args(argv)
    try:
        return int(args.run(args))
    except VoicepipeError as error:
        print(f"voicepipe: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    """Every command and option."""
    top = argparse.ArgumentParser("voicepipe", description="Answers calls with a voice AI; aims at 300 ms.")
    top.add_argument("--version", action="version", version=f"voicepipe {__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="a PoP on this machine, with one spoken call placed to it")
    demo.add_argument("--once", action="store_true", help="end after the call; exit 1 unless its answer was right")
    demo.add_argument(
        "--lan", action="store_true", help="for the browsers of other machines on this network, too: https, with a key"
    )
    _add_address(demo)
    demo.add_argument(
        "--sip-port", type=_port, metavar="PORT", help="UDP port for phones (default: 5060, or any; 0: any free one)"
    )
    _add_log(demo, "warning")
    demo.set_defaults(run=_demo)

    pop = commands.add_parser("pop", help="run a PoP")
    pop.add_argument("--config", type=Path, metavar="FILE", help="configuration over the built-in defaults")
    pop.add_argument("--pop", type=Path, metavar="FILE", help="this PoP's manifest, over the configuration")
    _add_address(pop)
    pop.add_argument("--sip-port", type=_port, metavar="PORT", help="UDP port for phones, in place of sip.port")
    _add_log(pop, "info")
    pop.set_defaults(run=_pop)

    directory = commands.add_parser("directory", help="say to callers which of several PoPs to call")
    directory.add_argument("--config", type=Path, metavar="FILE", required=True, help="as configs/directory.toml")
    _add_address(directory)
    _add_log(directory, "info")
    directory.set_defaults(run=_directory)

    bench = commands.add_parser("bench", help="measure a part of voicepipe on this machine")
    _add_bench(bench)

    check = commands.add_parser("check", help="read configurations, agents and manifests, and say what is wrong")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a TOML file, or a directory of them")
    check.set_defaults(run=_check)

    _add_plan(commands.add_parser("plan", help="which GPUs a language model needs, and what a turn takes on them"))

    models = commands.add_parser("models", help="the models of the configured engines")
    verbs = models.add_subparsers(title="what to do", required=True, metavar="VERB")
    pull = verbs.add_parser("pull", help="fetch those that are not here, ahead of time")
    pull.add_argument("config", type=Path, metavar="CONFIG", help="configuration whose engines they are for")
    pull.set_defaults(run=_models_pull)

    doctor = commands.add_parser("doctor", help="what works on this machine, and what to do about the rest")
    doctor.add_argument("--config", type=Path, metavar="FILE", help="whether a PoP with this configuration could start")
    doctor.add_argument("--json", action="store_true", help="what must be alike on machines that share a model")
    doctor.add_argument("--compare", nargs="+", type=Path, metavar="FILE", help="files of --json: what differs")
    doctor.set_defaults(run=_doctor)
    return top


def _add_bench(bench: argparse.ArgumentParser) -> None:
    parts = bench.add_subparsers(title="parts", required=True, metavar="PART")
    media = parts.add_parser("media", help="a call's media: by WebRTC, beside stock aiortc, and by phone")
    media.add_argument("--calls", type=int, default=10, help="at a time (default 10)")
    media.add_argument("--seconds", type=float, default=15, help="measured, of each (default 15)")
    media.set_defaults(run=_bench_media)
    network = parts.add_parser("network", help="what jitter and loss do to a caller's sound, in virtual time")
    network.set_defaults(run=_bench_network)
    sip = parts.add_parser("sip", help="calls by SIP, 30 and 50 a second; needs sipp")
    sip.set_defaults(run=_bench_sip)

    _add_engines(parts.add_parser("engines", help="turns on this device, by models of true shape with random weights"))


def _add_engines(engines: argparse.ArgumentParser) -> None:
    engines.add_argument(
        "--shape",
        default="llama-3.1-8b",
        metavar="NAME",
        help="language model (default: %(default)s); tiny: a trial, with less of everything",
    )
    engines.add_argument(
        "--asr-shape", metavar="NAME", help="Whisper's size (default: large-v3-turbo; tiny in a trial)"
    )
    engines.add_argument("--tts-shape", metavar="NAME", help="speech synthesis (default: kokoro-82m)")
    engines.add_argument("--calls", type=_counts, metavar="N,N", help="at a time (default: 1,8,32)")
    engines.add_argument("--seconds", type=float, help="measured, of each number of calls (default: 30)")
    engines.add_argument("--asr-window", type=int, metavar="SECONDS", help="that Whisper hears in a pass (default: 10)")
    engines.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")
    engines.add_argument("--stand-ins", action="store_true", help="stand-ins in torch also for what is installed")
    engines.add_argument("--seed", type=int, default=1, help="of the load (default: 1)")
    engines.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")
    engines.add_argument("--table", action="store_true", help="print the table in Markdown")
    engines.set_defaults(run=_bench_engines)


def _add_address(command: argparse.ArgumentParser) -> None:
    command.add_argument("--host", metavar="HOST", help="address to listen on (default: 127.0.0.1, this machine only)")
    command.add_argument(
        "--port", type=_port, metavar="PORT", help="port to listen on (default: 8080; 0: any free one)"
    )


def _add_log(command: argparse.ArgumentParser, default: str) -> None:
    command.add_argument(
        "--log", choices=LOG_LEVELS, default=default, help=f"what is logged: from this level on (default: {default})"
    )


def _add_plan(plan: argparse.ArgumentParser) -> None:
    plan.add_argument(
        "--model", required=True, metavar="NAME", help="a model's name, its config.json, or its directory"
    )
    plan.add_argument("--gpus", required=True, metavar="GPU:N", help="of one host: H100:2, L4, RTX-4090")
    plan.add_argument("--calls", type=int, default=8, metavar="N", help="at a time (default 8)")
    plan.add_argument(
        "--interconnect", choices=("nvlink", "pcie", "ethernet"), default="",
        help="between the GPUs (default: NVLink where they have it, else PCIe)",
    )  # fmt: skip
    plan.add_argument(
        "--asr", choices=("tiny", "base", "small", "medium", "large-v3", "large-v3-turbo"), default="large-v3-turbo",
        help="size of Whisper (default large-v3-turbo)",
    )  # fmt: skip
    plan.add_argument("--tts", choices=("kokoro", "coqui"), default="kokoro", help="default kokoro")
    plan.add_argument("--json", action="store_true", help="for other programs, in bytes and milliseconds")
    plan.set_defaults(run=_plan)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 0 to 65535")
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    counts = text.split(",")
    if not all(count.isdecimal() and 0 < int(count) <= 1024 for count in counts):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give numbers from 1 to 1024 with commas between them, as in 1,8,32"
        )
    return tuple(int(count) for count in counts)


def _demo(args: argparse.Namespace) -> int:
    began = time.monotonic()
    from voicepipe import config, runtime

    log_from(args.log)
    settings = config.load()
    if args.lan:
        if args.host:
            raise ConfigError("--lan listens on all addresses of this machine; give --lan or --host, not both")
        from voicepipe import lan

        settings = lan.opened(settings)
    settings = _listening(args, settings, phones=True)
    from voicepipe import demo  # loads the engines' libraries: not before it is known that the demo may listen

    return runtime.run(demo.run(settings, began, once=args.once))


def _pop(args: argparse.Namespace) -> int:
    from voicepipe import config, runtime
    from voicepipe.engines import hub

    log_from(args.log)
    try:
        return runtime.run(runtime.serve(_listening(args, config.load(args.config, args.pop))))
    except EngineMissing as error:
        raise EngineMissing(hub.copyable(str(error), args.config)) from None


def _directory(args: argparse.Namespace) -> int:
    from voicepipe import directory_config, runtime

    log_from(args.log)
    return runtime.run(runtime.serve_directory(directory_config.load(args.config), args.host, args.port))


def _listening(args: argparse.Namespace, settings: "Config", *, phones: bool = False) -> "Config":
    """The configuration of a command that listens: what could keep it from that is said at once. `phones`: they may
    call, also where it names no port for them."""
    from voicepipe import config, runtime
    from voicepipe.ingress.local import check_exposure, check_phones

    settings = runtime.with_address(settings, args.host, args.port)
    if args.sip_port is not None:
        settings = runtime.with_sip_port(settings, args.sip_port)
    elif phones:
        settings = runtime.with_phones(settings)
    config.check_together(settings)  # again: the options may have let phones in
    check_exposure(settings)
    check_phones(settings)
    config.keys(settings)
    config.sip_passwords(settings)
    return settings


def _bench_media(args: argparse.Namespace) -> int:
    from voicepipe import runtime
    from voicepipe.bench import media

    return runtime.run(media.run(args.calls, args.seconds))


def _bench_network(args: argparse.Namespace) -> int:
    from voicepipe.bench import network

    return network.run()


def _bench_sip(args: argparse.Namespace) -> int:
    from voicepipe import runtime
    from voicepipe.bench import sip

    return runtime.run(sip.run())


def _bench_engines(args: argparse.Namespace) -> int:
    from voicepipe.bench.engines import run
    from voicepipe.bench.engines.chosen import Options

    trial = args.shape == "tiny"
    options = Options(
        llm=args.shape,
        asr=args.asr_shape or ("tiny" if trial else "large-v3-turbo"),
        tts=args.tts_shape or ("tiny" if trial else "kokoro-82m"),
        calls=args.calls or ((1, 2) if trial else (1, 8, 32)),
        seconds=(3.0 if trial else 30.0) if args.seconds is None else args.seconds,
        window_s=(3 if trial else 10) if args.asr_window is None else args.asr_window,
        device=args.device,
        standins=args.stand_ins,
        seed=args.seed,
    )
    return run.run(options, args.json, args.table)


def _check(args: argparse.Namespace) -> int:
    from voicepipe import check

    return check.run(args.files)


def _plan(args: argparse.Namespace) -> int:
    from voicepipe import plan

    return plan.run(
        args.model, args.gpus, args.calls,
        interconnect=args.interconnect, asr=args.asr, tts=args.tts, as_json=args.json,
    )  # fmt: skip


def _models_pull(args: argparse.Namespace) -> int:
    from voicepipe import models

    return models.pull(args.config)


def _doctor(args: argparse.Namespace) -> int:
    from voicepipe import doctor

    if args.compare:
        return doctor.compare(args.compare)
    return doctor.to_json(args.config) if args.json else doctor.run(args.config)
