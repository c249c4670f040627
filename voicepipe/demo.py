"""`voicepipe demo`: a PoP in this process, and one spoken call placed to it over loopback, with its timings."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from latency_probes import clips
from latency_probes.realtime import RealtimeCaller
from latency_probes.timeline import Timeline
from voicepipe import runtime
from voicepipe.config import Config
from voicepipe.errors import ProbeError
from voicepipe.pop import running

INTENT = "hours"
"""What the demo's caller wants: the opening hours."""

PATIENCE_S = 20.0
STAGES = (
    # What the row shows, from, to: offsets from the caller's last voiced sample, by their names in the turn's record.
    ("endpointing", "", "at_commit"),
    ("speech recognition", "at_settle", "at_words"),
    ("language model", "at_prepare", "at_phrase"),
    ("speech synthesis", "at_phrase", "at_speech"),
    ("playout", "at_commit", "at_audible"),
)
BAR = 48
"""Characters of the waterfall's time axis."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the demo's call."""

    asked: str
    heard: str
    answered: str
    right: bool
    """The answer holds words that it should."""
    turn: dict[str, Any]
    """`TurnRecord.summary()` of the turn, as the response's metadata carries it."""


async def run(config: Config, *, once: bool) -> int:
    """Start, call, show; then stay up until a signal. With `once`: end after the call, 1 if the answer was wrong."""
    console = Console(highlight=False)
    began = time.monotonic()
    async with running(config):
        console.print(f"ready in {time.monotonic() - began:.1f} s at [bold]{runtime.url(config.http)}[/]")
        outcome = await call(runtime.url(config.http, "ws"))
        show(outcome, config.pop.budget_ms, console)
        if once:
            return 0 if outcome.right else 1
        console.print(f"\nOpen {runtime.url(config.http)} and talk to it yourself. Ctrl-C stops.")
        return await runtime.forever()


async def call(url: str) -> Outcome:
    """Place one call with a shipped recording of a spoken question. Raises ProbeError if no answer comes."""
    question = next(utterance for utterance in clips.load(["finished"]) if utterance.intent == INTENT)
    spoken = await asyncio.to_thread(clips.speech, question, seed=0)
    caller = RealtimeCaller(url, "quiet", seed=0)
    timeline = caller.timeline
    await caller.dial()
    try:
        await _until(lambda: bool(timeline.of_type("session.created")), "no session began")
        await asyncio.sleep(0.5)  # a greeting has begun by then, if there is one
        await _until(lambda: not timeline.busy() and time.monotonic() > timeline.play_end, "the greeting has no end")
        before = len(timeline.events)
        caller.say(spoken.pcm)
        await _until(lambda: _answer(timeline, before) is not None, "no answer came")
    finally:
        await caller.hang_up()
    return _outcome(question, timeline, before)


async def _until(true: Callable[[], bool], otherwise: str) -> None:
    """Wait for what only the timeline shows."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not true():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise ProbeError(f"the demo's call failed: {otherwise} within {PATIENCE_S:g} s; see the log above") from None


def _answer(timeline: Timeline, before: int) -> dict[str, Any] | None:
    """The finished response to the question, which began with event number `before`."""
    for event in timeline.events[before:]:
        if event.type == "response.done" and event.data["response"]["status"] == "completed":
            return dict(event.data["response"])
    return None


def _outcome(question: clips.Utterance, timeline: Timeline, before: int) -> Outcome:
    response = _answer(timeline, before) or {}
    heard = timeline.of_type("conversation.item.input_audio_transcription.completed")
    answered = " ".join(timeline.transcript(item["id"]) for item in response.get("output", []))
    expected = clips.intents()[question.intent].expect
    return Outcome(
        asked=question.text,
        heard=str(heard[-1].data["transcript"]) if heard else "",
        answered=answered,
        right=any(re.search(pattern, answered, re.IGNORECASE) for pattern in expected),
        turn=json.loads((response.get("metadata") or {}).get("voicepipe.turn", "{}")),
    )


def show(outcome: Outcome, budget_ms: int, console: Console) -> None:
    """Print the call: the words, and where the turn's milliseconds went."""
    console.print(f"asked     {outcome.asked}")
    console.print(f"heard     {outcome.heard or '(nothing)'}")
    console.print(f"answered  {outcome.answered or '(nothing)'}")
    if not outcome.right:
        console.print("[red]This is not the answer to that question.[/]")
    latency = outcome.turn.get("turn_latency")
    if latency is not None:
        colour = "green" if latency <= budget_ms else "red"
        console.print(f"\nturn latency [bold {colour}]{latency:.0f} ms[/] of {budget_ms} ms\n")
        console.print(waterfall(outcome.turn, budget_ms))


def waterfall(turn: dict[str, Any], budget_ms: int) -> Table:
    """Every stage of the turn on one axis, which begins at the caller's last voiced sample and shows the budget."""
    table = Table(box=None, header_style="dim")
    table.add_column("ms after the caller's last word")
    table.add_column("from", justify="right")
    table.add_column("to", justify="right")
    table.add_column("")
    stages = [(name, turn.get(start, 0.0 if not start else None), turn.get(end)) for name, start, end in STAGES]
    axis = max([float(budget_ms), *(end for _, _, end in stages if end is not None)])
    for name, start, end in stages:
        if start is not None and end is not None:
            table.add_row(name, f"{start:.0f}", f"{end:.0f}", _bar(start, end, axis))
    table.add_row("budget", "", f"{budget_ms}", Text(" " * round(budget_ms / axis * (BAR - 1)) + "|", "dim"))
    return table


def _bar(start: float, end: float, axis: float) -> Text:
    left, right = round(max(0.0, start) / axis * BAR), round(max(0.0, end) / axis * BAR)
    return Text(" " * left + "█" * max(1, right - left), "cyan")
