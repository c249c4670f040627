"""One model reads for all calls: whose turn it is.

Words that a call waits for (`settle`, `finish`) go first, then the words at a gap of the voice, which may be its end,
then partials. An utterance has one request at most, and a pass reads the newest sound at the time when it begins. A
pass cannot be stopped. So a pass for partials is kept short, and where there are several threads it leaves one free.
Under overload calls get fewer partials, and their final words come as soon as before. When a pass of several utterances
fails, each is read by itself: one of them cannot be read, or all were too much for the memory. Calls take turns: one
that has ended a hundred utterances at once waits with most of them until others were read.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.base.queues import QueueFigures, QueueOutcomes, show
from voicepipe.base.round_robin import Ring
from voicepipe.base.worker import Worker
from voicepipe.engines.hosting.failures import FailureTrials

if TYPE_CHECKING:
    from voicepipe.engines.asr.whisper_model import Passage, WhisperReading

log = logging.getLogger(__name__)

PARTIALS_S = 0.06
"""A pass for partials gets more utterances only as long as it stays below this: who waits for words waits for its
end."""

STALL_S = 10.0
"""A pass that takes so much longer than its sound lasts hangs: a CPU that reads slower can answer nobody."""
ENDED = "The recogniser has ended: see the log."

Who = TypeVar("Who")


class Purpose(IntEnum):
    """The purpose of a pass; the lowest goes first."""

    WORDS = 0
    """Somebody waits for the words."""
    GAP = 1
    """The voice has paused: its words are asked for in a moment, or the caller goes on."""
    PARTIAL = 2


class PassSchedule(Generic[Who]):
    """The order in which utterances are read. Pure. `batch`: utterances that one pass reads, at most; `passes`: passes
    at a time."""

    def __init__(self, batch: int, passes: int = 1) -> None:
        self._batch, self._passes = batch, passes
        self._asking: dict[Purpose, Ring[Who]] = {purpose: Ring() for purpose in Purpose}
        self._alone: dict[Who, None] = {}
        self._short = 1
        """Utterances in a pass for partials: as many as it has time for, found by trying."""

    def ask(self, who: Who, purpose: Purpose = Purpose.PARTIAL, owner: str = "") -> None:
        """Queue `who`. Once more changes nothing, but a request may become more urgent. `owner`: the call that it is
        for."""
        if any(who in self._asking[each] for each in Purpose if each <= purpose):
            return
        self.withdraw(who)
        self._asking[purpose].put(who, owner)

    def again(self, failed: Iterable[Who]) -> None:
        """A pass of them failed: each is read by itself, before the others."""
        self._alone.update(dict.fromkeys(failed))

    def withdraw(self, who: Who) -> None:
        self._alone.pop(who, None)
        for asking in self._asking.values():
            asking.remove(who)

    def next(self, running: int = 0) -> list[Who]:
        """Who is read in the next pass, beside `running` others. All of a pass have the same purpose."""
        if running >= self._passes:
            return []
        if self._alone:
            who = next(iter(self._alone))
            del self._alone[who]
            return [who]
        purpose = next((purpose for purpose in Purpose if self._asking[purpose]), Purpose.PARTIAL)
        if purpose is Purpose.PARTIAL and running and running >= self._passes - 1:
            return []
        most = self._short if purpose is Purpose.PARTIAL else self._batch
        return list(islice(iter(self._asking[purpose].pop, None), most))

    def took(self, utterances: int, seconds: float) -> None:
        """Note that a pass of so many utterances took so long."""
        if seconds <= PARTIALS_S and utterances >= self._short:
            self._short = min(self._batch, self._short + 1)
        elif seconds > PARTIALS_S and utterances <= self._short:
            self._short = max(1, utterances - 1)


class PassClient(Protocol):
    """An utterance that passes read: `WhisperStream`."""

    owner: str
    """Id of the call that the utterance is of."""

    def next_input(self) -> "Passage":
        """What the pass that begins now is to read."""

    def on_result(self, passage: "Passage", reading: "WhisperReading") -> None:
        """A pass has read `passage`."""

    def on_abandoned(self, passage: "Passage") -> None:
        """A pass has not read `passage`, since its words were not wanted any more (`Passage.wanted`)."""

    def on_failure(self, error: Exception) -> None:
        """The passage could not be read."""


class Passes:
    """Runs passes of `read` for all utterances on the worker's threads, one on each. A pass that takes `stall_s` longer
    than its sound hangs. `trial`: what every healthy model reads."""

    def __init__(
        self,
        worker: Worker,
        read: "Callable[[list[Passage]], list[WhisperReading]]",
        batch: int,
        clock: Callable[[], float],
        trial: "Passage",
        stall_s: float = STALL_S,
        passes: int = 1,
    ) -> None:
        self.failures = FailureTrials(
            lambda: worker.ask(partial(self._read, [trial]), within_s=stall_s + trial.seconds)
        )
        self._worker = worker
        self._read = read
        self._clock = clock
        self._schedule: PassSchedule[PassClient] = PassSchedule(batch, passes)
        self._stall_s = stall_s
        self._running: list[list[tuple[PassClient, Passage]]] = []
        """The passes that run, each with those who are read in it."""
        self._reading: Counter[PassClient] = Counter()
        """In how many running passes each utterance is read."""
        self._closed = False
        self._since: dict[PassClient, float] = {}
        """Since when each utterance waits whose voice has paused."""
        self._waits = QueueOutcomes()
        self._read_for: Counter[PassClient] = Counter()
        """Passes, other than for partials, that each utterance had."""
        self._wasted = 0
        show(self)

    def figures(self) -> QueueFigures | None:
        """As `queues.Queue`, for passes at gaps and for words. A pass is wasted if its words were not the last ones."""
        if self._closed:
            return None
        running = sum(map(len, self._running))
        return self._waits.figures("whisper", waiting=len(self._since), running=running, wasted=self._wasted)

    def ask(self, who: PassClient, purpose: Purpose = Purpose.PARTIAL) -> None:
        """Have `who` read; its methods are called back on the event loop."""
        if purpose is not Purpose.PARTIAL:
            self._since.setdefault(who, self._clock())
        self._schedule.ask(who, purpose, who.owner)
        self._next()

    def reading(self, who: PassClient) -> bool:
        """Whether a pass that reads it is under way."""
        return self._reading[who] > 0

    def withdraw(self, who: PassClient) -> None:
        """Do not have `who` read. A pass that runs ends by itself."""
        self._since.pop(who, None)
        self._schedule.withdraw(who)

    def end(self, who: PassClient, *, heard: bool) -> None:
        """The utterance is over. `heard`: words were read, by its last pass."""
        self.withdraw(who)
        self._wasted += max(0, self._read_for.pop(who, 0) - heard)

    def close(self) -> None:
        """Fail who asks from now on, and who is read by a pass that runs."""
        self._closed = True
        running, self._running = self._running, []
        for who, _ in chain.from_iterable(running):
            who.on_failure(EngineDead(ENDED))
        self._next()

    def _next(self) -> None:
        while chosen := self._schedule.next(len(self._running)):
            if self._closed:
                for who in chosen:
                    who.on_failure(EngineDead(ENDED))
                continue
            for who in chosen:
                if (since := self._since.pop(who, None)) is not None:
                    self._waits.began(self._clock() - since)
                    self._read_for[who] += 1
            batch = [(who, who.next_input()) for who in chosen]
            # Those of a batch are read at the same time.
            within_s = self._stall_s + max(given.seconds for _, given in batch)
            reading = self._worker.ask(partial(self._read, [given for _, given in batch]), within_s=within_s)
            self._running.append(batch)
            self._reading.update(chosen)
            reading.add_done_callback(partial(self._done, batch, self._clock()))

    def _done(
        self, batch: "list[tuple[PassClient, Passage]]", began: float, done: "asyncio.Future[list[WhisperReading]]"
    ) -> None:
        self._reading -= Counter(who for who, _ in batch)
        fails = done.cancelled() or done.exception()
        if self._closed:
            return  # `close` has failed them.
        soon = asyncio.get_running_loop().call_soon  # each for itself: what goes wrong in one call is not another's
        if fails:
            self._failed([who for who, _ in batch], done)
        else:
            self._succeeded(batch, done.result(), self._clock() - began)
        soon(self._again, batch)

    def _succeeded(
        self, batch: "list[tuple[PassClient, Passage]]", readings: "list[WhisperReading]", seconds: float
    ) -> None:
        """The pass took so many seconds; it has no readings where nobody wanted them any more."""
        soon = asyncio.get_running_loop().call_soon
        if not readings:  # The decoder has not run: that is no sign that it works.
            for who, given in batch:
                soon(who.on_abandoned, given)
            return
        self.failures.worked()
        self._schedule.took(len(batch), seconds)
        for (who, given), made in zip(batch, readings, strict=True):
            soon(who.on_result, given, made)

    def _failed(self, batch: list[PassClient], done: "asyncio.Future[list[WhisperReading]]") -> None:
        if done.cancelled():
            error = EngineError("The recogniser was closed.")
        else:
            self.failures.failed()
            error = EngineError(f"Whisper failed: {str(done.exception()).strip()}")
            log.warning("%s (%d utterances)", error, len(batch))
            if len(batch) > 1:
                self._schedule.again(batch)
                return
        for who in batch:
            asyncio.get_running_loop().call_soon(who.on_failure, error)

    def _again(self, batch: "list[tuple[PassClient, Passage]]") -> None:
        """Begin the next pass, once all have heard of this one and may have asked again."""
        # By identity: who is read, and what, may be equal in two passes.
        self._running = [other for other in self._running if other is not batch]
        self._next()
