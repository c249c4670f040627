"""`voicepipe pops`, `drain`, `push`, `records` and `upgrade`: their options, and what they run. All ask a running
server."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voicepipe.base.errors import ConfigError

if TYPE_CHECKING:
    from voicepipe.commands.remote_server import RemoteServer

UPGRADE_S = 1800.0
"""Seconds that a new process may take to load its engines."""
RECORDS_S = 60.0
"""Seconds that an answer about records may take: longer than a directory waits for its PoPs."""


def add(commands: Any) -> None:
    """Add the five commands to argparse's subparsers."""
    pops = _asking(commands.add_parser("pops", help="a table of the PoPs that a directory hears of"))
    pops.add_argument(
        "--compare", nargs=2, metavar=("A", "B"),
        help="two versions, or PoPs, by their last hour: is B worse than A? Exit status 1 if it is",
    )  # fmt: skip
    pops.add_argument("--forget", metavar="POP", help="one that was taken away for good is not named any more")
    pops.set_defaults(run=_pops)
    drain = _asking(commands.add_parser("drain", help="have a PoP take no new calls, and end with its last one"))
    drain.add_argument("pop", metavar="POP", help="its id, as `voicepipe pops` has it")
    drain.set_defaults(run=_drain)
    _add_push(commands.add_parser("push", help="agents, routes and tenants for a whole fleet; or an earlier state"))
    _add_records(
        commands.add_parser("records", help="calls that are kept, one in full, what they cost; to delete them")
    )
    upgrade = commands.add_parser("upgrade", help="have a PoP start its program anew, and cut no call")
    _add_url(upgrade, "where the PoP answers")
    _add_key(upgrade, "VOICEPIPE_OPERATOR_KEY", "the operator's key")
    upgrade.set_defaults(run=_upgrade)


def _add_push(push: argparse.ArgumentParser) -> None:
    push.add_argument("folder", type=Path, nargs="?", metavar="FOLDER", help="with agents' files, as configs/agents")
    push.add_argument(
        "--with", dest="rules", type=Path, metavar="FILE", help="routes, tenants and canaries, in one file"
    )
    push.add_argument("--own-rules", action="store_true",
                      help="each host goes back to its own file's routes, tenants and canaries")  # fmt: skip
    push.add_argument("--check", action="store_true", help="only ask whether all hosts would take it")
    push.add_argument("--version", type=int, metavar="N", help="roll the fleet back to edition N")
    push.add_argument("--list", action="store_true", help="the editions that may be rolled back to")
    _asking(push).set_defaults(run=_push)


def _add_records(command: argparse.ArgumentParser) -> None:
    what = command.add_mutually_exclusive_group()
    what.add_argument("call", nargs="?", metavar="ID", help="one call, with all that was said in it")
    what.add_argument("--costs", choices=("agent", "tenant"), help="what calls have cost, by agent or by tenant")
    what.add_argument("--delete", metavar="ID", help="delete all that is kept of one call")
    what.add_argument("--delete-caller", metavar="NUMBER", help="delete all calls from exactly this number")
    what.add_argument("--delete-all", action="store_true",
                      help="delete all calls of --tenant, or of the time that --since and --until give")  # fmt: skip
    _add_url(command, "where the PoP answers, or a directory")
    _add_key(command, "VOICEPIPE_KEY", "a tenant's key or the operator's")
    command.add_argument("--since", metavar="TIME", default="", help="30m, 2h or 7d ago, or a date (2026-11-27)")
    command.add_argument("--until", metavar="TIME", default="", help="likewise: calls that began before then")
    command.add_argument("--limit", type=int, metavar="N", default=50, help="calls at most (default %(default)s)")
    command.add_argument("--tenant", metavar="NAME", default="", help="calls of this tenant alone, for the operator")
    command.add_argument("--agent", metavar="NAME", default="", help="calls of this agent alone")
    command.add_argument("--caller", metavar="NUMBER", default="", help="calls from this number, or from its end")
    command.add_argument(
        "--reason", metavar="WORD", default="", help='calls that ended so: "caller", "error", "cut", ...'
    )
    command.add_argument("--json", action="store_true", help="for other programs")
    command.set_defaults(run=_records)


def _add_url(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("--url", dest="server", metavar="URL", default="http://127.0.0.1:8080",
                         help=f"{what} (default %(default)s)")  # fmt: skip


def _asking(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    command.add_argument("--directory", dest="server", metavar="URL", default="http://127.0.0.1:8080",
                         help="where the directory answers (default %(default)s)")  # fmt: skip
    _add_key(command, "VOICEPIPE_OPERATOR_KEY", "the operator's key")
    return command


def _add_key(command: argparse.ArgumentParser, variable: str, whose: str) -> None:
    key = command.add_mutually_exclusive_group()
    key.add_argument("--key-env", metavar="NAME", default=variable,
                     help=f"environment variable with {whose} (default %(default)s)")  # fmt: skip
    key.add_argument("--key-file", metavar="FILE", default="", help=f"instead: a file with {whose}")
    command.add_argument("--ca", metavar="FILE", default="",
                         help="certificates of authorities that are trusted besides the system's (PEM)")  # fmt: skip


def _server(args: argparse.Namespace) -> "RemoteServer":
    from voicepipe.base.secret_source import SecretSource
    from voicepipe.commands.remote_server import RemoteServer

    key = SecretSource(file=args.key_file) if args.key_file else SecretSource(variable=args.key_env)
    return RemoteServer(url=args.server, key=key, ca=args.ca)


def _pops(args: argparse.Namespace) -> int:
    from voicepipe.commands import compare, fleet

    if args.compare:
        known, new = args.compare
        return compare.run(known, new, _server(args))
    if args.forget:
        return fleet.forget(args.forget, _server(args))
    return fleet.pops(_server(args))


def _drain(args: argparse.Namespace) -> int:
    from voicepipe.commands import fleet

    return fleet.drain(args.pop, _server(args))


def _upgrade(args: argparse.Namespace) -> int:
    from msgspec.structs import replace

    from voicepipe.commands import upgrade

    return upgrade.run(replace(_server(args), kinds=("PoP",), option="--url", within_s=UPGRADE_S))


def _push(args: argparse.Namespace) -> int:
    from voicepipe.commands import push

    with_folder = args.rules or args.own_rules or args.check
    one = sum(map(bool, (args.folder, args.version is not None, args.list))) == 1
    if not one or (with_folder and not args.folder) or (args.rules and args.own_rules):
        raise ConfigError(
            "push: give one of the three: a folder with agents' files, such as configs/agents (and --with FILE or "
            "--own-rules, and --check, if you like), --version N, or --list"
        )
    if args.list:
        return push.listed(_server(args))
    if args.version is not None:
        return push.roll_back(args.version, _server(args))
    return push.push(args.folder, args.rules, _server(args), own_rules=args.own_rules, dry=args.check)


def _records(args: argparse.Namespace) -> int:
    from msgspec.structs import replace

    from voicepipe.commands import records

    server = replace(_server(args), kinds=("PoP", "directory"), option="--url", within_s=RECORDS_S)
    asked = records.RecordsQuery(server=server, as_json=args.json)
    if args.delete is not None or args.delete_caller is not None or args.delete_all:
        others = args.agent, args.caller, args.reason, args.delete and (args.since or args.until or args.tenant)
        if any(others):
            raise ConfigError("--delete goes with no other choice of calls, --delete-caller and --delete-all with "
                              "--tenant, --since and --until alone: leave the others out")  # fmt: skip
        if args.delete is not None:
            return records.delete(asked, args.delete)
        if args.delete_caller is not None and not args.delete_caller.strip():
            raise ConfigError("--delete-caller: give the whole number; it is empty")
        if args.delete_all and not (args.since or args.until or args.tenant):
            raise ConfigError("--delete-all: say which calls: --tenant, --since or --until")
        return records.delete_matching(asked, caller=args.delete_caller or "", tenant=args.tenant, since=args.since,
                                       until=args.until)  # fmt: skip
    if args.call:
        return records.one(asked, args.call)
    if args.costs:
        return records.costs(asked, since=args.since, until=args.until, by=args.costs)
    return records.listed(asked, since=args.since, until=args.until, limit=args.limit,
                          tenant=args.tenant, agent=args.agent, caller=args.caller, reason=args.reason)  # fmt: skip
