"""Calls at a time, played to the engines in real time, on rtp's own media clock as in a PoP."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from voicepipe.base.errors import EngineBusy
from voicepipe.base.round_robin import owned_by
from voicepipe.bench import results
from voicepipe.bench.load import CallTurn, turns
from voicepipe.bench.results import Samples
from voicepipe.conversation.phrases import PhraseLengths, Phraser
from voicepipe.engines.base import Asr, AsrHints, AsrStream, Hypothesis, Llm, Prompt, Tts
from voicepipe.rtp.clock import PERIOD_S, MediaClock

IDLE_S = 0.05
"""Seconds until the next turn without idle gaps, when nobody speaks and no engine works."""
POLL_S = 0.05
GRACE_S = 3.0
"""Seconds after a run for turns that have begun."""
SAMPLES_A_MS = 16
BLOCK = round(1000 * PERIOD_S) * SAMPLES_A_MS


@dataclass(frozen=True)
class PlayedEngines:
    """The engines that take part in a run, and what they are asked."""

    prompt: Callable[[int, bool], Prompt]
    """The next prompt of a call, by its number; True: a guess, since the turn may not be over."""
    asr: Asr | None = None
    llm: Llm | None = None
    tts: Tts | None = None
    phrasing: PhraseLengths = PhraseLengths()
    """How replies are cut into phrases: random words have no commas."""
    language: str = "en"
    """The callers' language, for the recogniser."""
    voice: str = ""
    llm_name: str = ""
    """The language model's name, for the report."""

    @property
    def together(self) -> bool:
        return bool(self.asr and self.llm and self.tts)


@dataclass(frozen=True, slots=True)
class PlayedLoad:
    """The load of a run."""

    calls: int
    seconds: float
    seed: int
    gaps: bool
    """Idle gaps as in calls; else time in which nobody speaks and no engine works is cut to IDLE_S. Time in which one
    works never is."""
    sound: Any
    """The callers' speech, which is repeated: int16 at 16 kHz."""


async def play(engines: PlayedEngines, load: PlayedLoad) -> Samples:
    """Play so many calls; returns their samples. Raises what an engine raises."""
    player, clock, began = _Player(engines), MediaClock(), time.monotonic()
    lines = [_PlayedLine(player, clock, number, load, began) for number in range(load.calls)]
    removes = [clock.add(line.tick) for line in lines]
    ticking = asyncio.create_task(clock.run())
    try:
        while time.monotonic() - began < load.seconds and not player.failed:
            await asyncio.sleep(POLL_S)
            if not load.gaps:
                _cut(lines, player)
        for line in lines:
            line.over = True
        return await player.end(min(GRACE_S, load.seconds))
    finally:
        for remove in removes:
            remove()
        ticking.cancel()
        for line in lines:
            line.hang_up()


def _cut(lines: "Sequence[_PlayedLine]", player: "_Player") -> None:
    """Begin the next turn soon, where nothing is going on."""
    if player.idle and not any(line.speaks for line in lines):
        idle_s = min(line.wait_s for line in lines)
        for line in lines:
            line.skip(max(0.0, idle_s - IDLE_S))


class _PlayedLine:
    """A call that is played: its ticks feed the caller's sound."""

    def __init__(self, player: "_Player", clock: MediaClock, call: int, load: PlayedLoad, began: float) -> None:
        self.over = False
        self._clock = clock
        self._player, self._call, self._sound = player, call, load.sound
        self._turns, self._began = turns(call, load.seed), began
        self._turn: CallTurn = next(self._turns)
        self._heard: AsrStream | None = None
        self.speaks = False
        self._spoken = self._guess = 0
        """Samples of the turn that is being spoken; 0: there is no guess."""

    @property
    def wait_s(self) -> float:
        """Seconds until the caller speaks."""
        return self._began + self._turn.at - time.monotonic()

    def skip(self, seconds: float) -> None:
        self._began -= seconds

    def hang_up(self) -> None:
        if self._heard:
            self._heard.cancel()

    def tick(self, now: float) -> None:
        """A tick of the media clock, which goes on whatever is raised here."""
        if self.over:
            return
        try:
            self._tick(now)
        except Exception as error:
            self.over, self._player.failed = True, error

    def _tick(self, now: float) -> None:
        due = now - self._clock.late_s
        self._player.ticked(self._clock.late_s)
        if not self.speaks:
            if now < self._began + self._turn.at:
                return
            self.speaks, self._spoken = True, 0
            self._guess = round(1000 * (self._turn.guess_s or 0.0)) * SAMPLES_A_MS
            self._heard = self._player.listen(self._call, self)
        if self._heard:
            self._heard.feed(self._block())
        before, self._spoken = self._spoken, self._spoken + BLOCK
        if self._spoken >= 1000 * SAMPLES_A_MS * self._turn.spoken_s:
            heard, self._heard, self.speaks = self._heard, None, False
            self._turn = next(self._turns)
            self._player.turn(self._call, heard, due)
        elif before < self._guess <= self._spoken:
            self._player.guess(self._call, self._heard, due)

    def on_partial(self, partial: Hypothesis) -> None:
        if self._heard:
            self._player.partial(max(0, self._spoken - partial.until))

    def _block(self) -> Any:
        at = self._spoken % max(1, len(self._sound) - BLOCK)
        return self._sound[at : at + BLOCK]


class _Player:
    """The turns in progress."""

    def __init__(self, engines: PlayedEngines) -> None:
        self.failed: BaseException | None = None
        self._samples = Samples()
        self._engines = engines
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def idle(self) -> bool:
        return not self._tasks

    def listen(self, call: int, line: _PlayedLine) -> AsrStream | None:
        asr = self._engines.asr
        with owned_by(str(call)):
            return asr.stream(line.on_partial, AsrHints(self._engines.language)) if asr else None

    def ticked(self, late_s: float) -> None:
        self._samples.note(results.CLOCK, late_s)

    def partial(self, behind: int) -> None:
        self._samples.note(results.ASR_BEHIND, behind / SAMPLES_A_MS / 1000)

    def guess(self, call: int, heard: AsrStream | None, ended: float) -> None:
        """Prepare a reply up to its first phrase and throw it away, since the caller goes on."""
        self._start(call, self._guess(call, heard, ended))

    def turn(self, call: int, heard: AsrStream | None, ended: float) -> None:
        """The caller's last sound was due at the monotonic second `ended`."""
        self._samples.turns += 1
        self._samples.unanswered += bool(self._engines.llm or self._engines.tts)
        self._start(call, self._turn(call, heard, ended))

    async def end(self, grace_s: float) -> Samples:
        """Wait a while for turns in progress. Raises what an engine has raised."""
        until = time.monotonic() + grace_s
        while self._tasks and not self.failed and time.monotonic() < until:
            await asyncio.wait(self._tasks, timeout=until - time.monotonic(), return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.failed:
            raise self.failed
        return self._samples

    def _start(self, call: int, work: Coroutine[None, None, None]) -> None:
        with owned_by(str(call)):
            task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error and not isinstance(error, EngineBusy):  # that is a turn without an answer, as in a call
            self.failed = error

    async def _final(self, heard: AsrStream | None, ended: float) -> None:
        if heard:
            await heard.settle()
            self._samples.note(results.ASR_FINAL, time.monotonic() - ended)

    async def _guess(self, call: int, heard: AsrStream | None, ended: float) -> None:
        await self._final(heard, ended)
        text, llm, tts = PHRASES_ALONE[0], self._engines.llm, self._engines.tts
        if llm:
            text = ""
            phraser = Phraser(self._engines.phrasing)
            async with aclosing(self._words(llm, call, guess=True)) as reply:
                async for delta in reply:
                    if text := "".join([*phraser.push(delta)][:1]):
                        break
            text = text or "".join(phraser.flush())
        if tts and text.strip():
            async with aclosing(tts.speak(text, voice=self._engines.voice, first=True)) as sound:
                async for _ in sound:
                    pass

    async def _turn(self, call: int, heard: AsrStream | None, ended: float) -> None:
        try:
            await self._final(heard, ended)
        finally:
            if heard:
                heard.cancel()
        if self._engines.llm:
            await self._reply(self._engines.llm, call, ended)
        elif self._engines.tts:
            for number, text in enumerate(PHRASES_ALONE):
                await self._speak(self._engines.tts, text, number == 0, ended)

    async def _words(self, llm: Llm, call: int, *, guess: bool) -> AsyncGenerator[str, None]:
        async with aclosing(llm.generate(self._engines.prompt(call, guess))) as deltas:
            async for delta in deltas:
                if isinstance(delta, str) and delta:
                    yield delta

    async def _reply(self, llm: Llm, call: int, ended: float) -> None:
        asked = time.monotonic()
        first, pieces, spoken = asked, 0, 0
        phraser, tts = Phraser(self._engines.phrasing), self._engines.tts

        def whole(phrase: str) -> None:
            nonlocal spoken
            if not phrase.strip():
                return
            if not spoken:
                self._samples.note(results.LLM_PHRASE, time.monotonic() - asked)
            if tts:
                self._start(call, self._speak(tts, phrase, not spoken, ended))
            elif not spoken:
                self._samples.unanswered -= 1
            spoken += 1

        async with aclosing(self._words(llm, call, guess=False)) as reply:
            async for delta in reply:
                if not pieces:
                    first = time.monotonic()
                    self._samples.note(results.LLM_FIRST, first - asked)
                pieces += 1
                for phrase in phraser.push(delta):
                    whole(phrase)
        last = time.monotonic()
        for phrase in phraser.flush():
            whole(phrase)
        if pieces > 1:
            self._samples.note(results.LLM_CHUNK, (last - first) / (pieces - 1))

    async def _speak(self, tts: Tts, text: str, first: bool, ended: float) -> None:
        asked, heard = time.monotonic(), False
        async with aclosing(tts.speak(text, voice=self._engines.voice, first=first)) as sound:
            async for _ in sound:
                if first and not heard:
                    heard = True
                    self._first(asked, ended)
        if not first:
            self._samples.note(results.TTS_LATER, time.monotonic() - asked)

    def _first(self, asked: float, ended: float) -> None:
        now = time.monotonic()
        self._samples.note(results.TTS_FIRST, now - asked)
        self._samples.unanswered -= 1
        if self._engines.together:
            self._samples.turn(now - ended)


PHRASES_ALONE = ("We are open from noon.", "Would you like to book a table for tonight, or for another day this week?")
"""Phrases that are spoken where the voice is measured by itself: a first phrase and a later one."""
