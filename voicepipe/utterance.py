"""What the caller is saying, while it is said: its sound on the way to the recogniser, and the words so far."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from voicepipe.audio import Pcm
from voicepipe.engines.base import AsrStream, TurnStream
from voicepipe.errors import EngineError, EngineStalled
from voicepipe.turn.agreement import Agreement
from voicepipe.turn.endpoint import Evidence
from voicepipe.turn.pitch import Pitch
from voicepipe.turn.timing import TurnRecord
from voicepipe.turn.words import plain

log = logging.getLogger(__name__)
SETTLE_S = 30.0
"""A recogniser that takes longer for the words is broken. One that gets minutes of sound at once takes seconds."""
OPINION_S = 0.03
"""So much longer than for the words models of turns are waited for."""
Reads = Callable[[str], Coroutine[Any, Any, float | None]]
"""Probability that the caller's turn ends after these words, if anybody can tell."""


class Reading:
    """Asks whether the turn ends after the words so far; the answer about other words counts for nothing."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._words = ""
        self._task: asyncio.Task[float | None] | None = None
        self._over = False

    def about(self, words: str) -> None:
        """Ask about these, and no longer about those before."""
        if not self._over:
            if self._task:
                self._task.cancel()
            self._words, self._task = plain(words), asyncio.create_task(self._reads(words))

    def of(self, words: str) -> "asyncio.Task[float | None] | None":
        """The answer about these, if that was asked; nothing is asked from here on."""
        self._over = True
        return self._task if plain(words) == self._words else None

    def cancel(self) -> None:
        self._over = True
        if self._task:
            self._task.cancel()


@dataclass(slots=True)
class Utterance:
    """From its first voiced sample to its commit."""

    item_id: str
    start: int
    """First voiced sample."""
    heard_from: int
    """First sample that the recogniser got: the prefix before it."""
    began: float
    """Monotonic seconds."""
    stream: AsrStream
    record: TurnRecord
    voice: TurnStream | None = None
    """What a turn model hears of it."""
    end: int = 0
    """Last voiced sample, once the turn is over."""
    before: str = ""
    """The words of the turn that this one reopened."""
    partial: str = ""
    """The words since, as far as they are recognised while the caller speaks."""
    text: str = ""
    """The words since, when they were last asked for; frozen while a silence lasts."""
    announced: bool = False
    agreement: Agreement = field(default_factory=Agreement)
    pitch: Pitch = field(default_factory=Pitch)
    settling: "asyncio.Task[None] | None" = None
    _reading: "Reading | None" = None
    """While the words are settled."""

    @property
    def words(self) -> str:
        return f"{self.before} {self.text}".strip()

    def guess(self, text: str) -> tuple[str, bool]:
        """The words since, for now; returns those that are stable from here on, and whether any word is another."""
        others = plain(text) != plain(self.partial)
        self.partial = text
        if others and self._reading:
            self._reading.about(text)
        return " ".join(self.agreement.push(text.split())), others

    def hear(self, pcm: Pcm) -> None:
        """More of the caller's sound."""
        self.stream.feed(pcm)
        self.pitch.push(pcm)
        if self.voice:
            self.voice.feed(pcm)

    async def settle(self, reads: Reads) -> Evidence:
        """The words of all sound so far, without those before, and what speaks for and against their being all.

        `reads` is asked about the words so far beside the recogniser, anew when they are others; if that hears others
        yet in the end, what it said counts for nothing. Raises EngineError: the recogniser failed.
        """
        reading = self._reading = Reading(reads)
        reading.about(self.partial)
        listening = asyncio.create_task(self._complete())
        try:
            async with asyncio.timeout(SETTLE_S):
                hypothesis = await self.stream.settle()
            opinions = (listening, reading.of(hypothesis.text))
            await asyncio.wait([task for task in opinions if task], timeout=OPINION_S)
            complete, ends = (task.result() if task and task.done() else None for task in opinions)
        except TimeoutError:
            raise EngineStalled(f"The recogniser has not answered for {SETTLE_S:g} s.") from None
        finally:
            listening.cancel()
            reading.cancel()
        return Evidence(hypothesis.text, hypothesis.end_logprob, self.pitch.log_odds(), complete, ends)

    async def _complete(self) -> float | None:
        try:
            return await self.voice.complete() if self.voice else None
        except EngineError as error:
            log.error("the turn model is not heard: %s", error)
            return None
