"""The command line: argv -> configuration -> run. What a command needs is imported by that command alone."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from voicepipe import __version__
from voicepipe.base.errors import ConfigError, VoicepipeError
from voicepipe.commands import cli_bench, cli_probe, cli_remote, cli_serve
from voicepipe.commands.cli_serve import LOG_LEVELS, about, add_address, listening, port

if TYPE_CHECKING:
    from voicepipe.config import Config


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit status: 0 success, 1 bad news from the command itself, 2 a usage or configuration error."""
    args = parser().parse_args(argv)
    try:
        return int(args.run(args))
    except VoicepipeError as error:
        from voicepipe.serving import logs

        logs.report(str(error))
        return 2
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    """Every command and option."""
    top = argparse.ArgumentParser("voicepipe", description="Answers calls with a voice AI; aims at 300 ms.")
    top.add_argument("--version", action="version", version=f"voicepipe {__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    _add_demo(commands.add_parser("demo", help="a PoP on this machine, or several, with one spoken call placed to it"))

    cli_serve.add(commands)
    cli_remote.add(commands)

    probe = commands.add_parser("probe", help="place spoken calls at PoPs, again and again, and show how they went")
    cli_probe.add(probe)
    probe.set_defaults(run=cli_probe.run)

    bench = commands.add_parser("bench", help="measure a part of voicepipe on this machine")
    cli_bench.add(bench)

    new = commands.add_parser("new", help="write an agent of your own to begin with")
    new.add_argument("folder", type=Path, metavar="NAME", help="folder to make; its name is the agent's")
    new.set_defaults(run=_new)

    check = commands.add_parser("check", help="read configurations, agents and manifests, and say what is wrong")
    check.add_argument("files", nargs="*", type=Path, metavar="FILE", help="a TOML file, or a directory of them")
    check.add_argument("--config", type=Path, metavar="FILE", help="what a PoP with this configuration ...")
    check.add_argument("--pop", type=Path, metavar="FILE", help="... and this manifest would run")
    check.add_argument(
        "--strict",
        action="store_true",
        help="exit 1 on warnings, such as a secret that is not set on this machine",
    )
    check.set_defaults(run=_check)

    _add_configs(commands.add_parser("configs", help="the configurations, manifests and other files that come along"))

    _add_plan(commands.add_parser("plan", help="which GPUs a language model needs, and what a turn takes on them"))

    languages = commands.add_parser("languages", help="what callers in each language get, and what is missing")
    languages.add_argument("tags", nargs="*", metavar="TAG", help="only these, such as de or pt-BR")
    languages.add_argument("--config", type=Path, metavar="FILE", help="with its engines (default: the built-in ones)")
    languages.add_argument("--json", action="store_true", help="for other programs")
    languages.set_defaults(run=_languages)

    _add_models(commands.add_parser("models", help="the models of the configured engines"))

    doctor = commands.add_parser("doctor", help="what works on this machine, and what to do about the rest")
    doctor.add_argument("--config", type=Path, metavar="FILE", help="whether a PoP with this configuration could start")
    doctor.add_argument("--json", action="store_true", help="what must be alike on machines that share a model")
    doctor.add_argument("--compare", nargs="+", type=Path, metavar="FILE", help="files of --json: what differs")
    doctor.set_defaults(run=_doctor)
    return top


def _add_demo(demo: argparse.ArgumentParser) -> None:
    demo.add_argument(
        "--once", action="store_true",
        help="end after the call; exit 1 unless its answer was right (with an agent of yours: unless there was one)",
    )  # fmt: skip
    demo.add_argument(
        "--lan", action="store_true", help="for the browsers of other machines on this network, too: https, with a key"
    )
    demo.add_argument(
        "--llm",
        metavar="URL",
        help="language model's server of the OpenAI kind: it answers in place of the embedded engine",
    )
    demo.add_argument("--model", metavar="NAME", help="its model (default: the only one that it has)")
    demo.add_argument("--agent", type=Path, metavar="PATH", help="an agent of yours: its folder, or its file")
    demo.add_argument("--config", type=Path, metavar="FILE", help="engines and all else from here, as a PoP takes them")
    demo.add_argument(
        "--pops", type=int, choices=range(2, 6), metavar="N", help="2 to 5 PoPs and a directory, with a live map"
    )
    add_address(demo)
    demo.add_argument(
        "--sip-port", type=port, metavar="PORT", help="UDP port for phones (default: 5060, or any; 0: any free one)"
    )
    demo.add_argument(
        "--log",
        choices=LOG_LEVELS,
        default="warning",
        help="what is logged: from this level on (default: warning)",
    )
    demo.set_defaults(run=_demo)


def _add_models(models: argparse.ArgumentParser) -> None:
    verbs = models.add_subparsers(title="what to do", required=True, metavar="VERB")
    pull = verbs.add_parser("pull", help="fetch those that are not here, ahead of time")
    pull.add_argument(
        "asked", nargs="*", metavar="CONFIG",
        help="configuration whose engines they are for (default: the demo's), or the name of a known model",
    )  # fmt: skip
    pull.set_defaults(run=_models_pull)


def _add_configs(configs: argparse.ArgumentParser) -> None:
    verbs = configs.add_subparsers(title="what to do", required=True, metavar="VERB")
    verbs.add_parser("list", help="all, and what each is").set_defaults(run=_configs_list)
    show = verbs.add_parser("show", help="print one")
    show.add_argument("name", metavar="NAME", help="as `list` has it, or its end: gpu, local.toml")
    show.set_defaults(run=_configs_show)
    copy = verbs.add_parser("copy", help="copy one, or a folder of them, to make it yours")
    copy.add_argument("name", metavar="NAME", help="as `list` has it, or its end: gpu, pops/deploy")
    copy.add_argument("to", type=Path, nargs="?", default=Path(), metavar="FOLDER", help="where to (default: here)")
    copy.set_defaults(run=_configs_copy)
    write = verbs.add_parser("write", help="write what each host of a fleet has in /etc/voicepipe, secrets included")
    write.add_argument("hosts", type=Path, metavar="FILE", help="with the hosts' names, as pops/deploy/hosts.toml")
    write.add_argument("folder", type=Path, metavar="FOLDER", help="where to, a folder below it for each host")
    write.set_defaults(run=_configs_write)


def _add_plan(plan: argparse.ArgumentParser) -> None:
    plan.add_argument(
        "--model", required=True, metavar="NAME", help="a model's name, its config.json, or its directory"
    )
    plan.add_argument(
        "--gpus", required=True, metavar="GPU:N",
        help="of one host: H100:2, L4, RTX-4090, or as nvidia-smi names it; several with commas are compared",
    )  # fmt: skip
    plan.add_argument("--calls", type=int, default=8, metavar="N", help="at a time (default 8)")
    plan.add_argument(
        "--interconnect", choices=("nvlink", "pcie", "ethernet"), default="",
        help="between the GPUs (default: NVLink where they have it, else PCIe)",
    )  # fmt: skip
    plan.add_argument(
        "--asr", default="nemotron",
        choices=("nemotron", "tiny", "base", "small", "medium", "large-v3", "large-v3-turbo"),
        help="Nemotron Speech Streaming, or a size of Whisper (default nemotron)",
    )  # fmt: skip
    plan.add_argument(
        "--tts", choices=("kokoro", "neutts", "coqui"), default="kokoro", help="NeuTTS streams (default kokoro)"
    )
    plan.add_argument("--mps", action="store_true", help="CUDA MPS runs: processes on a GPU work at the same time")
    plan.add_argument(
        "--first-phrase", choices=("clause", "short"), default="clause",
        help="ladder.first_phrase; short: each is cut after 2 to 5 words, and Kokoro is heard sooner (default clause)",
    )  # fmt: skip
    plan.add_argument(
        "--price", type=float, metavar="N", help="price of the host an hour: what a minute of call costs there"
    )
    plan.add_argument(
        "--hosted",
        type=float,
        metavar="N",
        help="price of a minute of call at a hosted API: when the host is cheaper than that",
    )
    plan.add_argument("--json", action="store_true", help="for other programs, in bytes and milliseconds")
    plan.set_defaults(run=_plan)


def _demo(args: argparse.Namespace) -> int:
    began = time.monotonic()
    from voicepipe import config
    from voicepipe.commands import models
    from voicepipe.config.pop_config import LogConfig
    from voicepipe.serving import logs, runtime

    logs.configure(LogConfig(level=args.log))
    agent = _agent_file(args.agent)
    settings = _with_agent(agent, _with_llm(args, config.load(args.config)))
    if args.pops:
        return _demo_fleet(args, settings, began)
    if settings.http.cert:
        raise ConfigError(
            f"{args.config}: http.cert: a demo calls itself without TLS; leave the certificate out, or start "
            f"`voicepipe pop --config {args.config}`"
        )
    if args.lan:
        if args.host:
            raise ConfigError("--lan listens on all addresses of this machine; give --lan or --host, not both")
        from voicepipe.serving import lan

        settings = lan.opened(settings)
    with about(args.config):
        settings = listening(args, settings, phones=True)
    models.provide(settings)
    from voicepipe import demo  # loads the engines' libraries: not before it is known that the demo may listen

    shipped = config.load().pop
    own_agent = (settings.pop.agents, settings.pop.default_agent) != (shipped.agents, shipped.default_agent)
    with about(args.config):
        return runtime.run(demo.run(settings, began, once=args.once, own_agent=own_agent, agent_file=agent))


def _new(args: argparse.Namespace) -> int:
    from voicepipe.commands import new_agent

    return new_agent.write(args.folder)


def _with_agent(path: Path | None, settings: "Config") -> "Config":
    """The configuration with the command line's agent as the default one. Raises ConfigError."""
    if path is None:
        return settings
    import msgspec

    from voicepipe.config.agent_store import load_agent

    pop = msgspec.structs.replace(settings.pop, agents=str(path.parent), default_agent=load_agent(path).name)
    return msgspec.structs.replace(settings, pop=pop)


def _agent_file(path: Path | None) -> Path | None:
    """The file of the command line's agent. Raises ConfigError."""
    if path is None:
        return None
    from voicepipe.config.agent_store import file_of_agent

    if not path.exists():
        raise ConfigError(f"--agent: there is no {path}; give an agent's file, or the folder that holds it")
    file = file_of_agent(path)
    return file.parent.resolve() / file.name


def _with_llm(args: argparse.Namespace, settings: "Config") -> "Config":
    """The configuration with the command line's language model. Raises ConfigError."""
    if not args.llm:
        if args.model:
            raise ConfigError(
                "--model names a model of --llm: give both, as --llm http://127.0.0.1:11434/v1 --model NAME"
            )
        return settings
    import msgspec

    from voicepipe.base.ranges import check_url
    from voicepipe.config.engine_config import OpenAiConfig

    try:
        check_url("--llm", args.llm, "http://127.0.0.1:11434/v1")
    except ValueError as error:
        raise ConfigError(str(error)) from None
    url = args.llm if urlsplit(args.llm).path.strip("/") else f"{args.llm.rstrip('/')}/v1"
    openai = OpenAiConfig(base_url=url, model=args.model or "")  # A key that is configured is another server's.
    return msgspec.structs.replace(
        settings, openai=openai, engines=msgspec.structs.replace(settings.engines, llm="openai")
    )


def _demo_fleet(args: argparse.Namespace, settings: "Config", began: float) -> int:
    from voicepipe.commands import models
    from voicepipe.serving import runtime

    if args.agent or args.config:
        other = "--agent" if args.agent else "--config"
        raise ConfigError(f"--pops shows PoPs of its own, and a call that asks the front desk; leave {other}")
    if args.lan:
        raise ConfigError(
            "--pops is for this machine alone: anybody who reaches its map may stop PoPs, and no key is asked for; "
            "give --pops or --lan, not both"
        )
    if args.sip_port is not None:
        raise ConfigError("--pops takes no phones: a directory places calls by browsers and programs; leave --sip-port")
    settings = listening(args, settings)
    models.provide(settings)
    from voicepipe.demo import demo_fleet

    return runtime.run(demo_fleet.run(settings, args.pops, began, once=args.once))


def _check(args: argparse.Namespace) -> int:
    from voicepipe.commands import check

    whole = check.PopFiles(args.config, args.pop)
    if not args.files and not any(whole):
        raise ConfigError("check: name files, or what a PoP is started with: --config FILE, --pop FILE")
    return check.run(args.files, strict=args.strict, whole=whole)


def _configs_list(args: argparse.Namespace) -> int:
    from voicepipe.commands import configs

    return configs.listed()


def _configs_show(args: argparse.Namespace) -> int:
    from voicepipe.commands import configs

    return configs.show(args.name)


def _configs_copy(args: argparse.Namespace) -> int:
    from voicepipe.commands import configs

    return configs.copy(args.name, args.to)


def _configs_write(args: argparse.Namespace) -> int:
    from voicepipe.commands import write_hosts

    return write_hosts.write(args.hosts, args.folder)


def _plan(args: argparse.Namespace) -> int:
    from voicepipe.commands import plan, plan_cost

    return plan.run(
        args.model, args.gpus, args.calls,
        interconnect=args.interconnect, host=plan.HostOptions(args.asr, args.tts, args.mps, args.first_phrase),
        prices=plan_cost.given(args.price, args.hosted), as_json=args.json,
    )  # fmt: skip


def _languages(args: argparse.Namespace) -> int:
    from voicepipe.commands import languages

    return languages.run(args.tags, args.config, as_json=args.json)


def _models_pull(args: argparse.Namespace) -> int:
    from voicepipe.commands import models

    return models.pull(args.asked)


def _doctor(args: argparse.Namespace) -> int:
    from voicepipe import doctor

    if args.compare:
        return doctor.compare(args.compare)
    return doctor.to_json(args.config) if args.json else doctor.run(args.config)
