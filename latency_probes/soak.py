"""Hours of mixed calls by every door, well-behaved ones and others, and what they leave behind in the server."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
import numpy as np

from latency_probes import clips
from latency_probes.caller import Caller
from latency_probes.conversation import converse
from latency_probes.health import figures
from latency_probes.measure import answered_late, judge_call, went_on
from latency_probes.misbehaving import SHUT_OUT, Site, dies, floods, pours, stalls
from latency_probes.plan import CallPlan, Turn
from latency_probes.records import Said, TurnResult
from latency_probes.sound import rng_for
from latency_probes.timeline import Timeline
from voicepipe.base.errors import ProbeError

KINDS = {"behaves": 0.7, "dies": 0.12, "stalls": 0.06, "floods": 0.06, "pours": 0.06}
"""What callers do, and how often."""
TURNS = 4
"""Of a well-behaved call, at most."""
PAUSE_S = (0.2, 3.0)
"""Between two callers of a slot."""
EVERY_S = 10.0
"""Between two readings."""
LONG_WORDS = 9
"""A scripted recogniser hears so many words, one every 250 ms: what is said has to last as long."""
EMPTY_S = 120.0
"""After the last call its server may take so long to notice those that are gone."""
FAILURES = 20
"""That are kept; all are counted."""

NewCaller = Callable[[CallPlan], Caller]


class Reading(msgspec.Struct, frozen=True):
    """The numbers of /healthz, `at` seconds after the first call."""

    at: float
    figures: dict[str, float]


class Soaked(msgspec.Struct):
    """What happened."""

    planned_s: float
    slots: int
    seconds: float = 0.0
    before: dict[str, float] = {}
    """/healthz before the first call, ..."""
    after: dict[str, float] = {}
    """... and once the last one is over."""
    readings: list[Reading] = []
    calls: dict[str, int] = {}
    """By what their callers did."""
    shut_out: dict[str, int] = {}
    """Of those that do wrong: refused, or their connection was ended."""
    failed: int = 0
    """Well-behaved calls."""
    failures: list[str] = []
    """Why, of the first ones."""
    gaps: dict[str, list[float]] = {}
    """Heard gaps in ms of well-behaved calls' turns that were not lost, by door."""
    early: dict[str, int] = {}
    """Their turns whose answer began before they had finished, and went on: what a scripted recogniser hears may be
    over before the question is."""
    late: dict[str, int] = {}
    """Their turns in which the server acknowledged first, and answered in the same reply."""
    lost: dict[str, int] = {}
    """Their turns without an answer, or with the fallback in its place, by door."""
    losses: list[str] = []
    """What is known of the first of these."""

    def turns(self, door: str) -> int:
        """Of well-behaved calls, also those whose answer was early, late or lost."""
        return len(self.gaps.get(door, [])) + sum(count.get(door, 0) for count in (self.early, self.late, self.lost))


@dataclass(slots=True)
class Soak:
    """`doors` make well-behaved callers; `told` is called after every reading."""

    site: Site
    doors: Mapping[str, NewCaller]
    slots: int
    seconds: float
    told: Callable[[Soaked], None]
    seen: Soaked = field(init=False)
    _questions: list[clips.Utterance] = field(default_factory=list)
    _number: int = 0
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.seen = Soaked(self.seconds, self.slots)

    async def run(self) -> Soaked:
        """Soak; cancelled, it returns what there is by then.

        Raises ProbeError where the server shows no figures, or one call of a door cannot be placed at the start.
        """
        questions = [item for item in await asyncio.to_thread(clips.load, ["finished"]) if item.noise == "quiet"]
        self._questions = [item for item in questions if len(item.text.split()) >= LONG_WORDS] or questions
        self.seen.before = await asyncio.to_thread(figures, self.site.url)
        for door in self.doors:
            await self._behaves(door, rng_for(1, door), most=1)
            if self.seen.failures:
                raise ProbeError(f"by {door}: {self.seen.failures[0]}")
        began = self._began = time.monotonic()
        until = began + self.seconds
        jobs = [asyncio.create_task(self._slot(until)) for _ in range(self.slots)]
        jobs.append(asyncio.create_task(self._reads(began, until)))
        patience = 0.0
        try:
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*jobs)
                patience = EMPTY_S
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
        self.seen.seconds = time.monotonic() - began
        with suppress(ProbeError):
            self.seen.after = await self._emptied(patience)
        return self.seen

    async def _slot(self, until: float) -> None:
        doors = list(self.doors)
        kinds = {kind: share for kind, share in KINDS.items() if kind != "pours" or {"webrtc", "sip"} & {*doors}}
        shares = np.array(list(kinds.values())) / sum(kinds.values())
        while time.monotonic() < until:
            self._number += 1
            rng = rng_for(1, f"soak {self._number}")
            await asyncio.sleep(rng.uniform(*PAUSE_S))
            kind, door = str(rng.choice(list(kinds), p=shares)), str(rng.choice(doors))
            self._count(self.seen.calls, kind)
            if kind == "behaves":
                await self._behaves(door, rng)
                continue
            try:
                await self._misbehaves(kind, door, rng)
            except SHUT_OUT:
                self._count(self.seen.shut_out, kind)

    async def _behaves(self, door: str, rng: np.random.Generator, most: int = TURNS) -> None:
        turns = tuple(Turn("finished", self._question(rng)) for _ in range(int(rng.integers(1, most + 1))))
        plan = CallPlan(self._number, "quiet", turns)
        record = await converse(self.doors[door](plan), plan, seed=1)
        if record.failure:
            self.seen.failed += 1
            self.seen.failures += [record.failure] * (len(self.seen.failures) < FAILURES)
        results = await asyncio.to_thread(judge_call, record, {})
        for said, result in zip(record.said, results, strict=True):
            early = result.gap_ms is None and went_on(said, record.timeline)
            late = result.gap_ms is None and not early and answered_late(said, record.timeline)
            lost = (result.gap_ms is None and not early and not late) or result.outcome == "fallback"
            self.seen.early[door] = self.seen.early.get(door, 0) + early
            self.seen.late[door] = self.seen.late.get(door, 0) + late
            self.seen.lost[door] = self.seen.lost.get(door, 0) + lost
            self.seen.losses += [self._told(door, result, story(said, record.timeline))] * (
                lost and len(self.seen.losses) < FAILURES
            )
            if result.gap_ms is not None and not lost:
                self.seen.gaps.setdefault(door, []).append(result.gap_ms)

    def _told(self, door: str, result: TurnResult, events: str) -> str:
        answered = f"answered {result.reply!r}" if result.reply else "without an answer"
        minutes = (time.monotonic() - self._began) / 60
        return f"{minutes:.0f} minutes in, by {door}: {result.text!r}, heard as {result.heard!r}, {answered}; {events}"

    async def _misbehaves(self, kind: str, door: str, rng: np.random.Generator) -> None:
        match kind:
            case "dies":
                speech = await asyncio.to_thread(clips.speech, self._question(rng), 1)
                await dies(self.doors[door](CallPlan(self._number, "quiet", ())), speech, rng)
            case "stalls":
                await stalls(self.site, rng)
            case "floods":
                await floods(self.site, rng)
            case _:
                await pours(self.site, rng)

    async def _reads(self, began: float, until: float) -> None:
        while (now := time.monotonic()) < until:
            with suppress(ProbeError):  # A reading that is missing is one less.
                found = await asyncio.to_thread(figures, self.site.url)
                self.seen.readings.append(Reading(now - began, found))
            self.seen.seconds = now - began
            self.told(self.seen)
            await asyncio.sleep(min(EVERY_S, self.seconds / 20))

    async def _emptied(self, patience: float) -> dict[str, float]:
        deadline = time.monotonic() + patience
        while True:
            await asyncio.sleep(min(2.0, self.seconds / 20))  # What /healthz says is up to a second old.
            found = await asyncio.to_thread(figures, self.site.url)
            if not found.get("calls") or time.monotonic() > deadline:
                return found

    def _question(self, rng: np.random.Generator) -> clips.Utterance:
        return self._questions[int(rng.integers(len(self._questions)))]

    @staticmethod
    def _count(counts: dict[str, int], what: str) -> None:
        counts[what] = counts.get(what, 0) + 1


def story(said: Said, line: Timeline) -> str:
    """What the server told of this turn, by seconds from the caller's last word."""
    began, ended = (line.sent_at(said.start + at) for at in (said.speech.voiced[0], said.speech.voiced[1] - 1))
    heard = [reply for reply in line.replies.values() if reply.first_audible]
    told = [(reply.first_audible.arrived, f"audible: {reply.text!r}") for reply in heard if reply.first_audible]
    for event in line.events:
        details = event.data.get("response", {}).get("status_details") or {}
        if not event.type.endswith(".delta"):
            told.append((event.arrived, f"{event.type} {details.get('reason', '')}".rstrip()))
    return ", ".join(f"{at - ended:+.2f} {what}" for at, what in sorted(told) if began < at <= said.until)


def counted(seen: Soaked) -> Sequence[Reading]:
    """The readings that count: after the first half hour, or the first quarter of a shorter soak."""
    since = min(1800.0, seen.seconds / 4)
    return [reading for reading in seen.readings if reading.at >= since]
