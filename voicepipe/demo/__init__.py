"""`voicepipe demo`: a PoP in this process, and one spoken call placed to it over loopback, with its timings.
demo_fleet.py has `--pops`: several of them, and a directory."""

import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from latency_probes import clips
from latency_probes.conversation import converse
from latency_probes.measure import judge_call
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from latency_probes.records import TurnResult
from voicepipe.base.errors import EngineMissing, ProbeError
from voicepipe.config import Config
from voicepipe.config.credentials import keys_of
from voicepipe.pop.running import running
from voicepipe.serving import lan, runtime

INTENT = "hours"
"""The question of the demo's caller."""
ROOM = "quiet"
"""The room that the caller is in."""

STAGES = (
    # A row of the waterfall, from, to: names in the turn's record, milliseconds after the caller's last voiced sample.
    ("endpointing", "", "at_commit"),
    ("speech recognition", "at_settle", "at_words"),
    ("language model", "at_prepare", "at_phrase"),
    ("speech synthesis", "at_phrase", "at_speech"),
    ("playout", "at_commit", "at_audible"),
)
DRAIN_MS = 5000
"""Milliseconds: whoever only tries the demo does not wait for a call that a page has left open."""
AXIS = 40
"""Characters of the waterfall's time axis."""


async def run(
    config: Config, began: float, *, once: bool, own_agent: bool = False, agent_file: Path | None = None
) -> int:
    """Start, call, show; then stay up until a signal. With `once`: end after the call, 1 if the answer was wrong. With
    an agent of the user's own the right answer is unknown: a call is placed with `once` only, and 1 means that it was
    not answered. Raises EngineMissing: no model could answer it; ProbeError: the call failed.

    `began`: monotonic seconds at which the command was given, which is when the wait for it to be ready began.
    `agent_file`: as in `running`."""
    console = Console(highlight=False)
    config = msgspec.structs.replace(config, pop=msgspec.structs.replace(config.pop, drain_ms=DRAIN_MS))
    async with AsyncExitStack() as stack:
        config = stack.enter_context(keeping(config))
        pop = await stack.enter_async_context(running(config, agent_file))
        url = runtime.url(config.http)
        console.print(f"ready in {time.monotonic() - began:.1f} s at [bold]{url}[/]")
        for agent in pop.agents():
            who = pop.prepared.answering(agent)
            if not who.lacks and (pop.config.engines.llm == "openai" or not agent.intents):
                console.print(f"Agent {agent.name} is answered by {who.by}")
        if once or not own_agent:
            if lacks := pop.lacks(pop.agent(None)):
                raise EngineMissing(lacks)
            with calling(console):
                result = await call(config)
            problem = problem_of(result, own_agent=own_agent)
            show(result, problem, config.pop.budget_ms, console)
            if once:
                return 1 if problem else 0
        invite(config, console)
        return await runtime.forever()


@contextmanager
def keeping(config: Config) -> Iterator[Config]:
    """The configuration with a folder for records of calls, which is deleted with the demo unless it is the user's
    own."""
    if config.records.folder:
        yield config
        return
    with TemporaryDirectory(prefix="voicepipe-demo-") as folder:
        yield msgspec.structs.replace(config, records=msgspec.structs.replace(config.records, folder=folder))


@contextmanager
def calling(console: Console) -> Iterator[None]:
    """Print that a call goes on, for as long as it takes."""
    said = "calling itself with a recorded question, which takes about ten seconds ..."
    if not console.is_terminal:  # `status` moves, and says nothing elsewhere.
        console.print(said)
    with console.status(said):
        yield


async def call(config: Config) -> TurnResult:
    """Place one spoken call, as the probes do. Raises ProbeError."""
    key = next(iter(keys_of(config.tenants)), "")
    tls = lan.trust(config) if config.http.cert else None
    return await spoken(RealtimeCaller(runtime.url(config.http), ROOM, seed=0, key=key, tls=tls))


async def spoken(caller: RealtimeCaller) -> TurnResult:
    """A call of this caller's, with a shipped recording of a spoken question. Raises ProbeError."""
    questions = clips.load(["finished"])
    question = next(utterance for utterance in questions if (utterance.intent, utterance.noise) == (INTENT, ROOM))
    plan = CallPlan(1, question.noise, (Turn(question.kind, question),))
    record = await converse(caller, plan, seed=0)
    if record.failure:
        raise ProbeError(f"the demo's call failed: {record.failure}")
    return judge_call(record, {})[0]


def invite(config: Config, console: Console) -> None:
    """Print the addresses at which to talk to it, from here or from the network."""
    if not config.http.cert:
        console.print(f"\nOpen [bold]{runtime.url(config.http)}[/] and talk to it yourself. Ctrl-C stops.")
        if config.sip.port:
            console.print(f"Or call [bold]{runtime.sip_url(config)}[/] with a softphone.")
        return
    console.print("\nOpen it on a phone or a computer in this network, key and all. Ctrl-C stops.\n")
    for url in lan.urls(config):
        console.out(f"  {url}", style="bold")
    user, password = lan.sip_user(config)
    console.print(
        f"\nOr call with a softphone or desk phone: user [bold]{user}[/], password [bold]{password}[/], UDP.\n"
    )
    for address in lan.addresses():
        console.out(f"  sip:{config.pop.default_agent}@{address}:{config.sip.port}", style="bold")
    console.print(
        "\nThe browser will warn that nobody vouches for this machine's certificate: compare its SHA-256 fingerprint "
        'and choose "Advanced", then "Proceed" (or "Accept the Risk"; on an iPhone "Show Details", "visit this '
        'website").\n'
    )
    console.out(f"  {lan.fingerprint(config)}")  # not `print`, to which :CD: is an emoji


def problem_of(result: TurnResult, *, own_agent: bool) -> str:
    """The error in the answer, if there is one. For an agent of the user's own the right answer is unknown: only
    whether it answered counts."""
    if not own_agent:
        return "" if result.outcome == "right" else "That is not the answer to this question."
    failed = result.outcome in ("none", "acknowledged") or result.status == "failed"
    return "The agent has not answered." if failed or result.labels.get("ladder") == "fallback" else ""


def show(result: TurnResult, problem: str, budget_ms: int, console: Console) -> None:
    """Print the call: the words, errors in them, and where the turn's milliseconds went."""
    for name, words in (("asked", result.text), ("heard", result.heard), ("answered", result.reply)):
        console.print(f"{name:10}{words or '(nothing)'}", markup=False)
    if problem:
        console.print(f"[red]{problem}[/]")
    if result.gap_ms is not None:
        colour = "green" if result.gap_ms <= budget_ms else "red"
        console.print(
            f"\nThe caller heard the answer [bold {colour}]{result.gap_ms:.0f} ms[/] after their last word.\n"
        )
    if result.stages:
        console.print(waterfall(result.stages, budget_ms))


def waterfall(stages: Mapping[str, float], budget_ms: int) -> Table:
    """Every stage of the turn on one axis, which begins at the caller's last voiced sample and shows the budget."""
    spans = [(name, stages.get(start, 0.0 if not start else None), stages.get(end)) for name, start, end in STAGES]
    axis = max([float(budget_ms), *(end for _, _, end in spans if end is not None)])
    table = Table(box=None, header_style="dim")
    table.add_column("stage")
    table.add_column("from", justify="right")
    table.add_column("to ms", justify="right")
    table.add_column("")
    for name, start, end in spans:
        if start is not None and end is not None:
            table.add_row(name, f"{start:.0f}", f"{end:.0f}", _bar(start, end, axis))
    table.add_row("budget", "", f"{budget_ms}", Text(" " * round(budget_ms / axis * (AXIS - 1)) + "|", "dim"))
    return table


def _bar(start: float, end: float, axis: float) -> Text:
    left, right = (round(max(0.0, at) / axis * AXIS) for at in (start, end))
    return Text(" " * left + "█" * max(1, right - left), "cyan")
