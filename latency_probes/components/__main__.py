"""Command line: `python -m latency_probes.components PART`. What a part needs is imported by that part alone.

Exit status: 0, 1 calls failed or an aim was missed, 2 not measured, 130 stopped (Ctrl-C).
"""

import argparse
import sys
from collections.abc import Sequence

from latency_probes import command
from latency_probes.command import add_json, positive


def main(argv: Sequence[str] | None = None) -> int:
    """Measure one part; returns the exit status."""
    options = parser().parse_args(argv)
    return command.status(lambda: int(options.run(options)))


def parser() -> argparse.ArgumentParser:
    """Every part and its options."""
    cli = argparse.ArgumentParser(
        prog="python -m latency_probes.components", description="Measure a part of voicepipe on this machine."
    )
    parts = cli.add_subparsers(title="parts", required=True, metavar="PART")
    media = parts.add_parser("media", help="a call's media: by WebRTC, beside stock aiortc, and by phone")
    media.add_argument("--calls", type=positive, default=10, help="at a time (default 10)")
    media.add_argument("--seconds", type=float, default=15, help="measured, of each (default 15)")
    media.add_argument("--runs", type=positive, default=1, help="so many times: the ratio to aiortc is their median")
    media.set_defaults(run=_media)
    network = parts.add_parser("network", help="what jitter and loss do to a caller's sound, in virtual time")
    network.set_defaults(run=_network)
    whisper = parts.add_parser("whisper", help="how soon small Whispers have the words on this CPU; nothing is fetched")
    whisper.set_defaults(run=_whisper)
    languages = parts.add_parser(
        "languages", help="how well the language of people's prompts is told; needs Whisper base"
    )
    languages.add_argument("--each", type=positive, default=50, help="recordings of each language (default 50)")
    languages.set_defaults(run=_languages)
    sip = parts.add_parser("sip", help="calls by SIP, 30 and 50 a second; needs sipp")
    sip.set_defaults(run=_sip)
    directory = parts.add_parser("directory", help="how soon a directory answers, and how well it chooses")
    upgrade = parts.add_parser("upgrade", help="calls while their PoP is upgraded, again and again")
    upgrade.add_argument("--calls", type=positive, default=20, help="at a time (default 20)")
    upgrade.add_argument("--upgrades", type=positive, default=5, help="so many (default 5)")
    upgrade.set_defaults(run=_upgrade)
    tools = parts.add_parser(
        "tools", help="how soon a slow tool's result is heard, if it only reads and if it does not"
    )
    tools.add_argument("--calls", type=positive, default=10, help="to each of the two agents (default 10)")
    tools.add_argument("--takes-ms", type=positive, default=400, help="what the tool takes (default 400)")
    tools.set_defaults(run=_tools)
    for part in (media, network, whisper, languages, sip, upgrade, tools, *_directory_parts(directory)):
        add_json(part)
    return cli


def _directory_parts(directory: argparse.ArgumentParser) -> Sequence[argparse.ArgumentParser]:
    parts = directory.add_subparsers(title="parts", required=True, metavar="PART")
    resolve = parts.add_parser("resolve", help="how soon it says where to call, with 50 PoPs")
    resolve.add_argument("--rate", type=positive, default=200, help="requests a second (default 200)")
    resolve.add_argument("--seconds", type=positive, default=30, help="so long (default 30)")
    resolve.add_argument("--forwarded", action="store_true", help="each request from another address, as by a proxy")
    resolve.set_defaults(run=_resolve)
    setup = parts.add_parser("setup", help="calls asked for and relayed, beside calls straight to the PoP")
    setup.add_argument("--calls", type=positive, default=100, help="of each way (default 100)")
    setup.set_defaults(run=_setup)
    placement = parts.add_parser("placement", help="calls from 20 cities to nine PoPs, with round trips on the wire")
    placement.add_argument("--calls", type=positive, default=300, help="in all, ten at a time (default 300)")
    placement.add_argument(
        "--slots", type=positive, default=4, help="of each PoP (default 4: few enough that some fill)"
    )
    placement.set_defaults(run=_placement)
    return resolve, setup, placement


def _upgrade(options: argparse.Namespace) -> int:
    from latency_probes.components import upgrade
    from voicepipe.serving import runtime

    return runtime.run(upgrade.run(options.calls, options.upgrades, options.json))


def _tools(options: argparse.Namespace) -> int:
    from latency_probes.components import tools
    from voicepipe.serving import runtime

    return runtime.run(tools.run(options.calls, options.takes_ms, options.json))


def _media(options: argparse.Namespace) -> int:
    from latency_probes.components import media
    from voicepipe.serving import runtime

    return runtime.run(media.run(options.calls, options.seconds, options.runs, options.json))


def _network(options: argparse.Namespace) -> int:
    from latency_probes.components import network

    return network.run(options.json)


def _whisper(options: argparse.Namespace) -> int:
    from latency_probes.components import whisper

    return whisper.run(options.json)


def _languages(options: argparse.Namespace) -> int:
    from latency_probes.components import languages

    return languages.run(options.each, options.json)


def _sip(options: argparse.Namespace) -> int:
    from latency_probes.components import sip
    from voicepipe.serving import runtime

    return runtime.run(sip.run(options.json))


def _resolve(options: argparse.Namespace) -> int:
    from latency_probes.components.directory import resolve
    from voicepipe.serving import runtime

    return runtime.run(resolve.run(options.rate, options.seconds, options.json, forwarded=options.forwarded))


def _setup(options: argparse.Namespace) -> int:
    from latency_probes.components.directory import setup
    from voicepipe.serving import runtime

    return runtime.run(setup.run(options.calls, options.json))


def _placement(options: argparse.Namespace) -> int:
    from latency_probes.components.directory import placement
    from voicepipe.serving import runtime

    return runtime.run(placement.run(options.calls, options.slots, options.json))


if __name__ == "__main__":
    sys.exit(main())
