"""`voicepipe pop` and `directory`: their options, what they run, and what they read again; and what a demo shares with
them."""

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from voicepipe.base.errors import ConfigError, EngineMissing, VoicepipeError

if TYPE_CHECKING:
    from voicepipe.config import Config
    from voicepipe.config.directory_config import DirectoryConfig
    from voicepipe.config.probe_config import ProbeConfig

C = TypeVar("C", "Config", "DirectoryConfig", "ProbeConfig")
LOG_LEVELS = ("debug", "info", "warning", "error")


def add(commands: Any) -> None:
    """Add the two commands to argparse's subparsers."""
    pop = commands.add_parser("pop", help="run a PoP")
    pop.add_argument("--config", type=Path, metavar="FILE", help="configuration over the built-in defaults")
    pop.add_argument("--pop", type=Path, metavar="FILE", help="this PoP's manifest, over the configuration")
    add_address(pop)
    pop.add_argument("--sip-port", type=port, metavar="PORT", help="UDP port for phones, in place of sip.port")
    add_log(pop)
    pop.set_defaults(run=_pop)

    directory = commands.add_parser("directory", help="say to callers which of several PoPs to call")
    directory.add_argument("--config", type=Path, metavar="FILE", required=True, help="as configs/directory.toml")
    add_address(directory)
    add_log(directory)
    directory.set_defaults(run=_directory)


def add_address(command: argparse.ArgumentParser) -> None:
    """The options of a command that listens."""
    command.add_argument("--host", metavar="HOST", help="address to listen on (default: 127.0.0.1, this machine only)")
    command.add_argument("--port", type=port, metavar="PORT", help="port to listen on (default: 8080; 0: any free one)")


def add_log(command: argparse.ArgumentParser) -> None:
    """The options of a command that is a service."""
    command.add_argument("--log", choices=LOG_LEVELS, help="what is logged: from this level on, in place of log.level")
    command.add_argument("--log-format", choices=("text", "json"), help="how it is logged, in place of log.format")


def port(text: str) -> int:
    """An option's port. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 0 to 65535")
    return int(text)


@contextmanager
def about(*files: Path | None) -> Iterator[None]:
    """Errors in a configuration name its files, also where they tell how to get a model that it needs."""
    from voicepipe.config.file_kind import located

    try:
        yield
    except ConfigError as error:
        raise located(error, *files) from None
    except EngineMissing as error:
        from voicepipe.engines.weights import hub

        raise EngineMissing(hub.copyable(str(error), files[0])) from None


def listening(args: argparse.Namespace, settings: "Config", *, phones: bool = False) -> "Config":
    """The configuration of a command that listens, with errors now for what would keep it from that. `phones`: they may
    call, also where it has no port for them."""
    from voicepipe.serving import runtime

    settings = runtime.with_address(settings, args.host, args.port)
    if args.sip_port is not None or settings.sip.port:
        settings = runtime.with_sip_port(settings, settings.sip.port if args.sip_port is None else args.sip_port)
    elif phones:
        settings = runtime.with_phones(settings)
    _check_pop(settings)  # The options may have let phones in.
    return settings


def _check_pop(settings: "Config") -> None:
    from voicepipe import config
    from voicepipe.config import credentials
    from voicepipe.serving import runtime

    config.check_together(settings)
    for check in (*runtime.REFUSALS, credentials.check):
        check(settings)


def logged(args: argparse.Namespace, settings: C) -> C:
    """The configuration with the command line's log."""
    from msgspec.structs import replace

    log = replace(settings.log, level=args.log or settings.log.level, format=args.log_format or settings.log.format)
    return replace(settings, log=log)


@contextmanager
def _hangups_ignored() -> Iterator[None]:
    """SIGHUP changes nothing while a server is not there yet: it reads the files anyway."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@_hangups_ignored()
def _pop(args: argparse.Namespace) -> int:
    from voicepipe import config
    from voicepipe.config.pop_config import with_slots
    from voicepipe.config.reloader import Reloader
    from voicepipe.pop import predecessor
    from voicepipe.serving import logs, runtime, service_manager

    def log(settings: "Config") -> None:
        logs.configure(settings.log, pop=settings.pop.id)

    def read(running: "Config") -> "Config":
        with about(args.config, args.pop):
            fresh = runtime.with_address_of(logged(args, config.load(args.config, args.pop)), running, args)
            _check_pop(fresh)
        return with_slots(fresh)

    inherited = predecessor.inherited()
    before = predecessor.Predecessor(inherited) if inherited else None
    try:
        settings = logged(args, config.load(args.config, args.pop))
        log(settings)
        manager = service_manager.of_environment()
        reloader = Reloader(read, _check_pop, log, manager.reloading)
        with about(args.config, args.pop):
            if inherited:
                settings = runtime.with_inherited(settings, inherited, args)
                _check_pop(settings)
            else:
                settings = listening(args, settings)
            return runtime.run(runtime.serve(settings, reloader, manager, before), reloader.ask)
    except VoicepipeError as error:
        if before:
            before.failed(str(error))
        raise


@_hangups_ignored()
def _directory(args: argparse.Namespace) -> int:
    from voicepipe.config import load_directory
    from voicepipe.config.reloader import Reloader
    from voicepipe.serving import logs, runtime, service_manager

    def log(settings: "DirectoryConfig") -> None:
        logs.configure(settings.log, directory=settings.directory.id)

    def read(running: "DirectoryConfig") -> "DirectoryConfig":
        with about(args.config):
            fresh = runtime.with_address_of(logged(args, load_directory(args.config)), running, args)
            runtime.check_directory(fresh)
        return fresh

    settings = logged(args, load_directory(args.config))
    log(settings)
    manager = service_manager.of_environment()
    reloader = Reloader(read, runtime.check_directory, log, manager.reloading)
    with about(args.config):
        settings = runtime.with_address(settings, args.host, args.port)
        return runtime.run(runtime.serve_directory(settings, reloader, manager), reloader.ask)
