"""`voicepipe records`: its options, and what they run."""

import argparse

from voicepipe.base.errors import ConfigError


def add(command: argparse.ArgumentParser) -> None:
    """Add the command with its options."""
    what = command.add_mutually_exclusive_group()
    what.add_argument("call", nargs="?", metavar="ID", help="one call, with all that was said in it")
    what.add_argument("--costs", choices=("agent", "tenant"), help="what calls have cost, by agent or by tenant")
    what.add_argument("--delete", metavar="ID", help="delete all that is kept of one call")
    what.add_argument("--delete-caller", metavar="NUMBER", help="delete all calls from exactly this number")
    command.add_argument("--url", metavar="URL", default="http://127.0.0.1:8080",
                         help="where the PoP answers, or a directory (default %(default)s)")  # fmt: skip
    command.add_argument(
        "--key-env",
        metavar="NAME",
        default="VOICEPIPE_KEY",
        help="environment variable with a tenant's key or the operator's (default %(default)s)",
    )
    command.add_argument("--since", metavar="TIME", default="", help="30m, 2h or 7d ago, or a date (2026-11-27)")
    command.add_argument("--until", metavar="TIME", default="", help="likewise: calls that began before then")
    command.add_argument("--limit", type=int, metavar="N", default=50, help="calls at most (default %(default)s)")
    command.add_argument("--agent", metavar="NAME", default="", help="calls of this agent alone")
    command.add_argument("--caller", metavar="NUMBER", default="", help="calls from this number, or from its end")
    command.add_argument(
        "--reason", metavar="WORD", default="", help='calls that ended so: "caller", "error", "cut", ...'
    )
    command.add_argument("--json", action="store_true", help="for other programs")
    command.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from voicepipe.commands import records

    asked = records.RecordsQuery(url=args.url, key_env=args.key_env, as_json=args.json)
    if args.delete is not None or args.delete_caller is not None:
        if any((args.since, args.until, args.agent, args.caller, args.reason)):
            raise ConfigError("--delete and --delete-caller go with no other choice of calls: leave it out")
        if args.delete is not None:
            return records.delete(asked, args.delete)
        return records.delete_caller(asked, args.delete_caller)
    if args.call:
        return records.one(asked, args.call)
    if args.costs:
        return records.costs(asked, since=args.since, until=args.until, by=args.costs)
    return records.listed(asked, since=args.since, until=args.until, limit=args.limit, agent=args.agent,
                          caller=args.caller, reason=args.reason)  # fmt: skip
