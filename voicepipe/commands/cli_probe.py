"""`voicepipe probe`: its options, and how they become a configuration."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from voicepipe.base.errors import ConfigError
from voicepipe.commands.cli_serve import add_log, logged

if TYPE_CHECKING:
    from voicepipe.config.probe_config import ProbeConfig

DOORS = ("websocket", "webrtc", "sip")


def add(probe: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    probe.add_argument("--config", type=Path, metavar="FILE", help="whom to call, as configs/probe.toml")
    probe.add_argument("--url", action="append", default=[], metavar="URL",
                       help="instead: call the PoP at this address; may be given more than once")  # fmt: skip
    probe.add_argument("--directory", metavar="URL", default="", help="instead: call where this directory says")
    probe.add_argument("--straight", action="store_true", help="and each PoP of the directory at its own address")
    probe.add_argument("--by", type=_doors, metavar="DOOR,...",
                       help=f"some of {','.join(DOORS)}: each is a call of its own (default websocket)")  # fmt: skip
    probe.add_argument("--agent", default="", metavar="NAME", help="the agent that is called (default: the first)")
    probe.add_argument("--key-env", default="", metavar="NAME", help="environment variable with the key of these")
    probe.add_argument("--operator-key-env", default="", metavar="NAME",
                       help="environment variable with the operator's key, for --straight")  # fmt: skip
    probe.add_argument("--ca", default="", metavar="FILE", help="certificates (PEM) of authorities to trust, too")
    probe.add_argument("--budget-ms", type=int, metavar="MS", help="a longer wait is late (default 400)")
    probe.add_argument("--every", type=int, metavar="SECONDS", help="in place of probe.every_s (60)")
    probe.add_argument("--host", metavar="HOST", help="address of /metrics (default: 127.0.0.1, this machine only)")
    probe.add_argument("--port", type=int, metavar="PORT", help="port of /metrics (default: 9465; 0: any free one)")
    probe.add_argument("--once", action="store_true",
                       help="call each once, print what was heard, and end; exit 1 if anything failed")  # fmt: skip
    add_log(probe)


def _doors(text: str) -> tuple[str, ...]:
    doors = tuple(text.split(","))
    if unknown := [door for door in doors if door not in DOORS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is no door: give some of {','.join(DOORS)}")
    return doors


def run(args: argparse.Namespace) -> int:
    """Run the command. Raises ConfigError."""
    from voicepipe.probe.run import once, reread, serve
    from voicepipe.serving import logs, runtime

    config = configuration(args)
    logs.configure(config.log, service="probe")
    return runtime.run(once(config)) if args.once else runtime.run(serve(config), reread)


def configuration(args: argparse.Namespace) -> "ProbeConfig":
    """The configuration of the file, or of the options. Raises ConfigError."""
    from msgspec.structs import replace

    from voicepipe import config
    from voicepipe.config import toml_file
    from voicepipe.config.file_kind import located
    from voicepipe.config.probe_config import ProbeConfig, check_targets

    if args.config:
        if given := [option for option, its in _whom(args).items() if its]:
            raise ConfigError(f"--config says whom to call, and how: leave {', '.join(given)} out, or --config")
        found = config.load_probe(args.config)
    else:
        found = toml_file.convert({"targets": _targets(args), "tls": {"ca": args.ca}}, ProbeConfig, "the options")
    changes = {key: value for key, value in (("host", args.host), ("port", args.port)) if value is not None}
    found = logged(args, replace(found, http=replace(found.http, **changes)))
    if args.every is not None:
        if args.every < 5:
            raise ConfigError("--every: give at least 5 seconds: a call takes some 12")
        again_s = min(found.probe.again_s, args.every - 1)
        found = replace(found, probe=replace(found.probe, every_s=args.every, again_s=again_s))
    try:
        check_targets(found)
    except ConfigError as error:
        raise located(error, args.config) from None
    return found


def _whom(args: argparse.Namespace) -> dict[str, Any]:
    """The options in place of a file, as given."""
    return {"--url": args.url, "--directory": args.directory, "--straight": args.straight, "--by": args.by,
            "--agent": args.agent, "--key-env": args.key_env, "--operator-key-env": args.operator_key_env,
            "--budget-ms": args.budget_ms, "--ca": args.ca}  # fmt: skip


def _targets(args: argparse.Namespace) -> list[dict[str, Any]]:
    """The targets of the options, as a file has them."""
    if args.straight and not args.directory:
        raise ConfigError("--straight calls the PoPs of a directory: give --directory, or leave it out")
    both: dict[str, Any] = {"by": list(args.by or ("websocket",)), "agent": args.agent, "key_env": args.key_env,
                            "budget_ms": args.budget_ms or 400}  # fmt: skip
    named = [{"name": _name(url), "url": url, **both} for url in args.url]
    if args.directory:
        named.append({"name": _name(args.directory), "directory": args.directory, "straight": args.straight,
                      "operator_key_env": args.operator_key_env, **both})  # fmt: skip
    if not named:
        raise ConfigError("probe: whom to call? Give --config FILE, --url or --directory")
    return named


def _name(url: str) -> str:
    """The host and the port of an address, as the name of a target."""
    return re.sub("[^A-Za-z0-9.]+", "-", urlsplit(url).netloc or url).strip("-")[:64]
