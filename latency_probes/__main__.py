"""Command line: `python -m latency_probes URL`.

Exit status: 0 within the budget, 1 over it, 2 not measured, 130 stopped (Ctrl-C, SIGTERM) with what there was by then.
"""

import argparse
import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from latency_probes import by_pop, capacity, health, report, soak_report
from latency_probes.caller import Caller
from latency_probes.command import FAILED, STOPPED, positive, stoppable
from latency_probes.machine import Stolen
from latency_probes.misbehaving import Site
from latency_probes.own_server import COMMAND, own_server
from latency_probes.plan import OWN, SETS, SINGLE, CallPlan, make_plan, size
from latency_probes.realtime import RealtimeCaller, endpoint, idle_frames, origin, trust, trusted
from latency_probes.run import Runner
from latency_probes.sip import SipCaller, free_port
from latency_probes.soak import Soak, Soaked
from latency_probes.twilio import TwilioCaller, door
from latency_probes.via import KINDS, Via
from latency_probes.webrtc import WebRtcCaller
from voicepipe.audio import opus
from voicepipe.base.errors import ProbeError
from voicepipe.base.figures import keep

CALLERS: dict[str, type[RealtimeCaller | WebRtcCaller | SipCaller | TwilioCaller]] = {
    "websocket": RealtimeCaller,
    "webrtc": WebRtcCaller,
    "sip": SipCaller,
    "twilio": TwilioCaller,
}
SOAK_CONFIG = Path(__file__).parent / "soak.toml"


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, report; returns the exit status."""
    try:
        options = parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    # A file or a pipe has no width of its own, and 80 columns would break every figure in two.
    console = Console() if sys.stdout.isatty() else Console(width=170)
    if options.list:
        console.print("\n".join(f"{kind:14}{told_size(kind)}" for kind in SETS), highlight=False)
        return 0
    stolen = Stolen()
    if threading.current_thread() is threading.main_thread():
        # As Ctrl-C, so that a server of our own that is still starting does not outlive us.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if options.ca:
            trust(options.ca)
        if options.key_file:
            options.key = key_in(options)
        with target(options) as options.url:
            endpoint(options.url, options.agent)
            if options.capacity or options.offered:
                return filled(options, console)
            return soaked(options, console) if options.soak else probed(options, console)
    except ProbeError as error:
        Console(stderr=True).print(f"{error}", style="red", highlight=False, soft_wrap=True)
        return FAILED
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED
    finally:
        if warning := stolen.warning():
            console.print(warning, style="yellow", highlight=False)


def parser() -> argparse.ArgumentParser:
    """The options; --help is their documentation."""
    cli = argparse.ArgumentParser(
        prog="python -m latency_probes",
        description="Place real calls to a voice server that speaks OpenAI Realtime, and judge what is heard.",
    )
    cli.add_argument("url", nargs="?", default="", help="ws://host:port/v1/realtime or http://host:port")
    cli.add_argument("--self", dest="own", action="store_true", help="instead of URL: start a PoP here, then stop it")
    cli.add_argument("--config", type=Path, help="the configuration of the PoP that --self starts")
    cli.add_argument("--via", default="", metavar="URL", help="instead of URL: calls ask this directory where to go")
    cli.add_argument("--place", type=place, metavar="LAT,LON", help="with --via: where callers are; --place=-33.9,18.4")
    cli.add_argument(
        "--rtt", type=round_trips, default={}, metavar="POP=MS,...", help="with --via: round trips that they measured"
    )
    cli.add_argument("--by", choices=CALLERS, default="websocket", help="how calls are placed (default websocket)")
    cli.add_argument(
        "--set",
        dest="kinds",
        type=kinds_of,
        default=SINGLE,
        help=f"all (in English, but people's recordings), or some of {','.join(SETS)}: hard: synthetic voices; human: "
        "people's recordings, which are packages of Debian",
    )
    cli.add_argument("--calls", type=positive, help="so many calls (default: every utterance once)")
    cli.add_argument("--concurrency", type=positive, default=1, help="calls at a time (default 1)")
    cli.add_argument(
        "--soak",
        type=hours,
        metavar="HOURS",
        help="instead: hours of calls, by every door with --self, also of callers that die, stall and flood",
    )
    cli.add_argument("--slots", type=positive, metavar="N", help="of a soak, at a time (default: half of pop.slots)")
    cli.add_argument(
        "--capacity",
        type=positive,
        metavar="N",
        help="instead: N more calls at a time until it is late (--by webrtc, sip)",
    )
    cli.add_argument(
        "--offered", type=positive, metavar="N", help="instead: N calls, to see how many it refuses (--by webrtc, sip)"
    )
    cli.add_argument("--json", type=Path, metavar="FILE", help="write every turn and the summary to this file")
    cli.add_argument(
        "--phone", default="", metavar="HOST:PORT", help="by sip: where (default: port 5060 of the same host)"
    )
    _add_access(cli)
    cli.add_argument("--agent", default="", help="which agent to call, sent as ?model=")
    cli.add_argument("--budget-ms", type=float, default=300.0, help="a gap over this is late (default 300)")
    cli.add_argument("--p95-ms", type=float, help="fail over this p95 of finished utterances (default: the budget)")
    cli.add_argument("--seed", type=int, default=1, help="draws order, pauses and noise (default 1)")
    cli.set_defaults(twilio_token="")
    cli.add_argument("--list", action="store_true", help="show the sets and their sizes")
    return cli


def _add_access(cli: argparse.ArgumentParser) -> None:
    cli.add_argument("--key", default="", help="API key, sent as a bearer token; by twilio: the account's auth token")
    cli.add_argument(
        "--key-file",
        type=Path,
        metavar="FILE",
        help="instead of --key: a file that holds it, which no list of processes shows",
    )
    cli.add_argument(
        "--ca",
        default="",
        metavar="FILE",
        help="certificates of authorities that are trusted besides the system's (PEM)",
    )


def key_in(options: argparse.Namespace) -> str:
    """The key in the file. Raises ProbeError."""
    if options.key:
        raise ProbeError("give --key or --key-file, not both")
    try:
        return str(options.key_file.read_text()).strip()
    except (OSError, ValueError) as error:
        raise ProbeError(f"--key-file {options.key_file} cannot be read ({error}): give a file with the key") from None


def kinds_of(text: str) -> tuple[str, ...]:
    """The sets named in `text`."""
    kinds = OWN if text == "all" else tuple(text.split(","))
    unknown = [kind for kind in kinds if kind not in SETS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no set {unknown[0]!r}: give all, or some of {','.join(SETS)}")
    return kinds


def told_size(kind: str) -> str:
    """How many utterances are in this set, or why there are none."""
    try:
        return f"{size(kind):5}"
    except ProbeError as error:
        return f"    - {error}"


def hours(text: str) -> float:
    """A number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of hours above 0")
    return number


def place(text: str) -> tuple[float, float]:
    """Latitude and longitude."""
    try:
        latitude, longitude = map(float, text.split(","))
    except ValueError:
        latitude = longitude = float("nan")
    if not (abs(latitude) <= 90 and abs(longitude) <= 180):
        raise argparse.ArgumentTypeError(f"{text!r} is no place: give latitude and longitude, as 50.1,8.7")
    return latitude, longitude


def round_trips(text: str) -> dict[str, float]:
    """Milliseconds by PoP."""
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {pop: float(ms) for pop, ms in pairs}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no round trips: give them as fra1=12,lhr1=19.5") from None


@contextmanager
def target(options: argparse.Namespace) -> Iterator[str]:
    """The address of the server to call, or of the directory. Raises ProbeError unless there is exactly one."""
    if options.url and options.own:
        raise ProbeError("give an address or --self, not both (make bench gives --self: for a server that runs "
                         "already, python -m latency_probes ADDRESS)")  # fmt: skip
    if options.via:
        check_via(options)
    elif options.place or options.rtt:
        raise ProbeError("--place and --rtt are told to a directory: add --via with its address, or leave them out")
    elif not options.url and not options.own:
        raise ProbeError("give the address of one server, for example ws://127.0.0.1:8080/v1/realtime, or --self")
    if options.via:
        yield origin(options.via)
    elif options.own:
        config = options.config or (SOAK_CONFIG if options.soak else None)
        own = ("--config", str(config)) if config else ()
        with ExitStack() as stack:
            room: tuple[str, ...] = ()
            if options.capacity or options.offered:
                room = stack.enter_context(capacity.roomy(refuses=bool(options.offered)))
            phone: tuple[str, ...] = ()
            if options.by == "sip" or options.soak:
                phone = "--sip-port", str(free_port())
                options.phone = f"127.0.0.1:{phone[1]}"
            if (options.by == "twilio" and not (options.capacity or options.offered)) or options.soak:
                signed, options.twilio_token = stack.enter_context(door())
                phone += signed
            yield stack.enter_context(own_server((*COMMAND, *own, *room, *phone)))
    else:
        yield options.url


def check_via(options: argparse.Namespace) -> None:
    """Raises ProbeError: calls cannot be placed by a directory like this."""
    if options.url or options.own:
        raise ProbeError("--via says where to call: give it alone, without an address or --self")
    if options.by not in KINDS:
        raise ProbeError(f"directories place calls by {' and '.join(KINDS)}: --via does nothing for --by {options.by}, "
                         "so call a PoP's own address")  # fmt: skip
    if options.soak or options.capacity or options.offered:
        raise ProbeError("--soak, --capacity and --offered are of one PoP: give its address in place of --via")


def probed(options: argparse.Namespace, console: Console) -> int:
    """Place the planned calls and report."""
    plan = make_plan(options.kinds, options.seed, options.calls)
    for call in (*plan.references, *plan.calls):
        # Made now: it takes a tenth of a second that the blocks of other calls would wait for.
        idle_frames(call.noise, options.seed)
    with progress(console, len(plan.references) + len(plan.calls)) as advance:
        runner = Runner(caller_for(options), options.seed, options.concurrency, advance)
        run = stoppable(runner.run(plan))
    summary = report.summarise(run, options.budget_ms, options.p95_ms or options.budget_ms)
    report.show(run, summary, console)
    pops = by_pop.rows(run)
    by_pop.show(pops, console)
    if not options.via:
        console.print(health.vitals(options.url), highlight=False)
    keep(options.json, {"url": options.url, "seed": options.seed, "summary": summary, "pops": pops, "run": run})
    return STOPPED if run.calls < run.planned else 1 if summary.breaches else 0


def soaked(options: argparse.Namespace, console: Console) -> int:
    """Soak and report."""
    slots = options.slots or max(1, health.slots(options.url, options.key) // 2)
    doors = list(CALLERS) if options.own else [options.by]
    site = Site(options.url, options.phone, options.key, options.agent)
    with soaking(console, options.soak * 3600) as told:
        soak = Soak(site, {door: caller_for(options, door) for door in doors}, slots, options.soak * 3600, told)
        seen = stoppable(soak.run())
    found = soak_report.show(seen, console)
    keep(options.json, seen)
    return STOPPED if seen.seconds < seen.planned_s else 1 if found else 0


def filled(options: argparse.Namespace, console: Console) -> int:
    """Place more and more calls and report."""
    ways = capacity.ways(options.url, options.phone, options.key, options.agent)
    if (way := ways.get(options.by)) is None:
        raise ProbeError(f"--capacity and --offered place calls by {' or '.join(ways)}: add --by with one of them")
    if options.offered:
        with console.status(f"{options.offered} calls are placed, then held for 40 s ..."):
            step, refused = stoppable(capacity.offered(way, options.url, options.key, options.offered))
        capacity.show_offered(way, step, refused, console)
        keep(options.json, {"refused": refused, "held": step})
        return 0
    with console.status("each step takes 40 s ...") as status:
        steps = stoppable(
            capacity.capacity(
                way, options.url, options.key, options.capacity,
                lambda step: status.update(f"{step.calls} calls: loop lag p99 {step.loop_lag_p99_ms:.1f} ms ..."),
            )
        )  # fmt: skip
    capacity.show(way, steps, console)
    keep(options.json, steps)
    return 0


def caller_for(options: argparse.Namespace, by: str = "") -> Callable[[CallPlan], Caller]:
    """Makes the caller of each call; `by` another door than that of the options."""
    by = by or options.by
    make = CALLERS[by]
    opus.load()  # Not while other calls' blocks wait, ...
    trusted()  # ... nor this.
    where: dict[str, Any] = {"phone": options.phone} if by == "sip" else {}
    if options.via:
        where = {"via": Via(options.url, by, options.key, options.agent, options.place, options.rtt)}
    key = (by == "twilio" and options.twilio_token) or options.key
    return lambda plan: make(options.url, plan.noise, options.seed, key, options.agent, **where)


@contextmanager
def progress(console: Console, calls: int) -> Iterator[Callable[[], None]]:
    """A bar that moves by one call; nothing where the output is no terminal."""
    columns = (TextColumn("calls"), *Progress.get_default_columns()[1:2], MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("calls", total=calls)
        yield lambda: bar.advance(task)


@contextmanager
def soaking(console: Console, seconds: float) -> Iterator[Callable[[Soaked], None]]:
    """A bar that moves with the time; where the output is no terminal a line now and then."""
    columns = (TextColumn("{task.description}"), *Progress.get_default_columns()[1:2], TimeElapsedColumn())
    lines = Console(stderr=True, highlight=False)
    shown, losses = 0.0, 0
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("soak", total=seconds)

        def told(seen: Soaked) -> None:
            nonlocal shown, losses
            turns = sum(map(seen.turns, seen.lost))
            said = f"{turns} turns, {sum(seen.lost.values())} lost, {seen.failed} calls failed"
            bar.update(task, completed=seen.seconds, description=said)
            for loss in seen.losses[losses:]:
                lines.print(f"a turn was lost {loss}", style="red")
            losses = len(seen.losses)
            if not console.is_terminal and seen.seconds >= shown:
                shown += seconds / 20
                lines.print(f"{seen.seconds / 60:.0f} of {seconds / 60:.0f} minutes: {said}")

        yield told


if __name__ == "__main__":
    sys.exit(main())
