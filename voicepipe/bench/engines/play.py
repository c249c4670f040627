"""Calls at a time, played to the engines in real time."""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass

from voicepipe.bench.engines import figures
from voicepipe.bench.engines.figures import Samples
from voicepipe.bench.engines.load import PASSES_A_SECOND, PHRASES, LoadEvent, schedule
from voicepipe.bench.engines.stages import AsrStage, LlmStage, TtsStage

IDLE_S = 0.05
"""When nothing is being done the next event comes after this time at the latest, so that a run with one call, too,
holds turns enough for a percentile. Time in which engines work is never cut short."""
POLL_S = 0.01
GRACE_S = 3.0
"""After a run, for turns that have begun."""
IN_FLIGHT = 16
"""Readings at a time when ASR's capacity is measured."""


@dataclass(frozen=True)
class PlayedEngines:
    """Those that take part."""

    asr: AsrStage | None = None
    llm: LlmStage | None = None
    tts: TtsStage | None = None


async def play(engines: PlayedEngines, calls: int, seconds: float, seed: int) -> Samples:
    """What `calls` calls at a time see for `seconds` seconds. Raises what an engine raises."""
    player = _Player(engines)
    began, skipped = time.monotonic(), 0.0
    for event in schedule(calls, seed):
        while (now := time.monotonic() - began) < seconds and (wait := event.at - skipped - now) > 0:
            if player.idle and wait > IDLE_S:
                skipped += wait - IDLE_S
            await asyncio.sleep(min(wait, POLL_S))
        if now >= seconds:
            break
        player.begin(event)
        await asyncio.sleep(0)
    return await player.end(min(GRACE_S, seconds))


async def capacity(asr: AsrStage, seconds: float, seed: int) -> float:
    """Calls whose readings `asr` can do: the readings of many calls, one upon the other, for `seconds` seconds. Raises
    what it raises."""
    done, events = 0, schedule(IN_FLIGHT, seed)

    async def read(call: int) -> None:  # by a number of its own: readings of one call replace one another
        nonlocal done
        while True:
            event = next(events)
            heard = await asr.read(call, event.heard_s, final=event.final)
            done += heard  # not across the await: others count meanwhile

    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(read(call) for call in range(IN_FLIGHT)))
    return done / seconds / PASSES_A_SECOND


class _Player:
    """Turns and partials that are under way."""

    def __init__(self, engines: PlayedEngines) -> None:
        self._samples = Samples()
        self._asr, self._llm, self._tts = engines.asr, engines.llm, engines.tts
        self._together = bool(engines.asr and engines.llm and engines.tts)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: BaseException | None = None

    @property
    def idle(self) -> bool:
        return not self._tasks

    def begin(self, event: LoadEvent) -> None:
        """Do what the event asks for. Raises what an engine has raised meanwhile."""
        if self._failed:
            raise self._failed
        if event.final and not event.ends:
            self._start(self._guess(event))
        elif event.final:
            self._samples.turns += 1
            self._samples.unanswered += 1
            self._start(self._turn(event))
        elif self._asr:
            self._start(self._partial(self._asr, event))

    async def end(self, grace_s: float) -> Samples:
        """Wait a while for what has begun. Raises what an engine has raised."""
        until = time.monotonic() + grace_s
        while self._tasks and time.monotonic() < until:
            await asyncio.wait(self._tasks, timeout=until - time.monotonic())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._failed:
            raise self._failed
        return self._samples

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._failed = error

    async def _partial(self, asr: AsrStage, event: LoadEvent) -> None:
        began = time.monotonic()
        self._samples.partials += 1
        if await asr.read(event.call, event.heard_s, final=False):
            self._samples.note(figures.ASR_PARTIAL, time.monotonic() - began)
        else:
            self._samples.dropped += 1

    async def _final(self, event: LoadEvent) -> None:
        began = time.monotonic()
        if self._asr:
            await self._asr.read(event.call, event.heard_s, final=True)
            self._samples.note(figures.ASR_FINAL, time.monotonic() - began)

    async def _guess(self, event: LoadEvent) -> None:
        """The caller goes on: what is prepared up to the first phrase is thrown away."""
        await self._final(event)
        if self._llm:
            async with aclosing(self._llm.reply(event.call)) as reply:
                async for count in reply:
                    if count >= PHRASES[0]:
                        break
        if self._tts:
            await self._tts.speak(event.call, first=True)

    async def _turn(self, event: LoadEvent) -> None:
        began = time.monotonic()
        await self._final(event)
        if self._llm:
            await self._reply(self._llm, event.call, began)
        elif self._tts:
            for number in range(len(PHRASES)):
                await self._speak(self._tts, event.call, number == 0, began)
        else:
            self._samples.unanswered -= 1

    async def _reply(self, llm: LlmStage, call: int, began: float) -> None:
        asked = time.monotonic()
        first, tokens, spoken = asked, 0, 0
        async with aclosing(llm.reply(call)) as reply:
            async for count in reply:
                now = time.monotonic()
                if not tokens:
                    first = now
                    self._samples.note(figures.LLM_FIRST, now - asked)
                tokens = count
                while spoken < len(PHRASES) and tokens >= PHRASES[spoken]:
                    if spoken == 0:
                        self._samples.note(figures.LLM_PHRASE, now - asked)
                    if self._tts:
                        self._start(self._speak(self._tts, call, spoken == 0, began))
                    elif spoken == 0:
                        self._samples.unanswered -= 1
                    spoken += 1
        self._samples.note(figures.LLM_TOKEN, (time.monotonic() - first) / max(1, tokens - 1))

    async def _speak(self, tts: TtsStage, call: int, first: bool, began: float) -> None:
        asked = time.monotonic()
        await tts.speak(call, first=first)
        now = time.monotonic()
        self._samples.note(figures.TTS_FIRST if first else figures.TTS_LATER, now - asked)
        if not first:
            return
        self._samples.unanswered -= 1
        if self._together:
            self._samples.turn(now - began)
