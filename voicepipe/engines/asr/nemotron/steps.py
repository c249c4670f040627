"""One step serves all calls: who takes part in the next one, and who has a slot.

Words that a call waits for (`settle`, `finish`) go before partial ones, and calls take turns (`base/round_robin.py`):
an utterance gives one chunk to a step, however many it has waiting. So a call whose sound comes faster than real time
takes a row of each step and no more. A step cannot be stopped; it takes about as long for many as for one. So while
nobody waits, steps begin `gather_s` apart and hear more calls each: else many calls would keep the device busy with
steps for one or two.

When a step fails nobody knows what it has written: the words of those who took part in it are lost, and they are
notified.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from voicepipe.audio import Pcm
from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.base.queues import QueueFigures, QueueOutcomes, show
from voicepipe.base.round_robin import RoundRobin
from voicepipe.base.worker import Worker
from voicepipe.engines.asr.nemotron.slots import Slots
from voicepipe.engines.hosting.failures import FailureTrials

log = logging.getLogger(__name__)
ENDED = "The recogniser has ended: see the log."
NOT_FINITE = "Nemotron computed no numbers for this call: its words are lost."


@dataclass(frozen=True, slots=True)
class Row:
    """The input of one utterance to a step of the model."""

    slot: int
    begins: bool
    """Nothing of the utterance was heard before."""
    sounds: Sequence[Pcm]
    """Chunks of sound, heard one after the other."""
    prompt: int = 0
    """The model's number of the language."""
    copies: bool = False
    """The step works on a copy, and the slot stays as it was."""
    upto: int = 0
    """Samples of the utterance that are heard after the step; for the client alone (`NemotronStream`)."""


class StepOutput(NamedTuple):
    """The output of a step for one utterance."""

    tokens: list[int]
    finite: bool
    """False: the model computed no numbers, and the utterance's state is worth nothing."""


class StepModel(Protocol):
    """A model that runs steps: `model.LoadedNemotron`."""

    most: int
    """Rows of a step."""
    copies: int
    """Those of them that may be copies."""

    def hear(self, rows: Sequence[Row]) -> list[StepOutput]: ...

    def try_out(self) -> None:
        """Raises what is wrong with the model."""


class StepClient(Protocol):
    """An utterance that takes part in steps: `NemotronStream`."""

    owner: str
    """Id of the call that the utterance is of."""

    def on_slot(self, slot: int) -> None:
        """It has got this slot, until it leaves."""

    def next_input(self) -> Row | None:
        """What the step that begins now is to hear; None: nothing."""

    def on_result(self, given: Row, tokens: list[int]) -> None:
        """The step has heard `given`, and these are its tokens."""

    def on_failure(self, given: Row | None, error: EngineError) -> None:
        """The step has failed; `given` is None if nothing was tried."""


class Steps:
    """Runs steps of `model` for all utterances, on the worker's thread, one at a time. A step that takes `stall_s`
    hangs."""

    def __init__(
        self, worker: Worker, model: StepModel, streams: int, stall_s: float, clock: Callable[[], float],
        gather_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.failures = FailureTrials(lambda: worker.ask(model.try_out, within_s=stall_s))
        self.slots: Slots[StepClient] = Slots(streams)
        self._worker, self._model, self._stall_s, self._clock = worker, model, stall_s, clock
        self._gather_s, self._began = gather_s, -math.inf
        """When the last step began."""
        self._alarm: asyncio.TimerHandle | None = None
        self._queue: RoundRobin[StepClient] = RoundRobin()
        self._running: list[tuple[StepClient, Row]] = []
        self._closed = False
        self._since: dict[StepClient, float] = {}
        """Since when each utterance waits whose words somebody waits for."""
        self.waits = QueueOutcomes()
        show(self)

    def figures(self) -> QueueFigures | None:
        """As `queues.Queue`, for utterances whose words somebody waits for."""
        if self._closed:
            return None
        return self.waits.figures("nemotron", waiting=len(self._since), running=len(self._running))

    def enter(self, who: StepClient) -> None:
        """Give `who` a slot, now or once one is free."""
        if self._closed:
            who.on_failure(None, EngineDead(ENDED))
        else:
            self.slots.request(who, who.owner)
            self._admit()

    def leave(self, who: StepClient) -> None:
        """The utterance `who` is over. Its slot may be another's at once: a step that runs with it ends before the next
        begins."""
        self.withdraw(who)
        self.slots.leave(who)
        self._admit()

    def ask(self, who: StepClient, *, urgent: bool = False) -> None:
        """`who`, which has a slot, has something to be heard; its methods are called back on the event loop. Once more
        changes nothing, but a request may become urgent."""
        if urgent:
            self._since.setdefault(who, self._clock())
        self._queue.put(who, who.owner, urgent=urgent)
        self._next()

    def withdraw(self, who: StepClient) -> None:
        """Do not have `who` heard. A step that runs ends by itself."""
        self._since.pop(who, None)
        self._queue.remove(who)

    def close(self) -> None:
        """Fail whoever asks from now on, and those in a step that runs."""
        self._closed = True
        if self._alarm:
            self._alarm.cancel()
        running, self._running = self._running, []
        for who, given in running:
            who.on_failure(given, EngineDead(ENDED))
        for who in self.slots.turned_away():
            who.on_failure(None, EngineDead(ENDED))
        self._next()

    def _admit(self) -> None:
        while given := self.slots.next():
            who, slot = given
            who.on_slot(slot)

    def _next(self) -> None:
        if self._closed:
            while (who := self._queue.pop()) is not None:
                who.on_failure(None, EngineDead(ENDED))
        elif self._running or not self._queue:
            return
        elif (early_s := self._early_s()) > 0:
            if self._alarm is None:
                self._alarm = asyncio.get_running_loop().call_later(early_s, self._alarm_rang)
        elif batch := self._chosen():
            self._running, self._began = batch, self._clock()
            rows = [given for _, given in batch]
            hearing = self._worker.ask(partial(self._model.hear, rows), within_s=self._stall_s)
            hearing.add_done_callback(partial(self._done, batch))

    def _early_s(self) -> float:
        """Seconds until the next step may begin, unless somebody waits for words."""
        return 0.0 if self._since else self._began + self._gather_s - self._clock()

    def _alarm_rang(self) -> None:
        self._alarm = None
        self._next()

    def _chosen(self) -> list[tuple[StepClient, Row]]:
        """The next step's. What is a copy too many comes in the one after it."""
        batch: list[tuple[StepClient, Row]] = []
        late: list[StepClient] = []
        copies = 0
        while len(batch) < self._model.most and (who := self._queue.pop()) is not None:
            if (given := who.next_input()) is None:
                continue
            if given.copies and copies == self._model.copies:
                late.append(who)
                continue
            copies += given.copies
            batch.append((who, given))
            if (since := self._since.pop(who, None)) is not None:
                self.waits.began(self._clock() - since)
        for who in late:
            self._queue.put(who, who.owner, urgent=True)
        return batch

    def _done(self, batch: list[tuple[StepClient, Row]], done: "asyncio.Future[list[StepOutput]]") -> None:
        error = None if done.cancelled() else done.exception()
        if self._closed:
            return  # `close` has failed them.
        soon = asyncio.get_running_loop().call_soon  # each for itself: what goes wrong in one call is not another's
        if done.cancelled() or error:
            said = EngineError(f"Nemotron failed: {str(error).strip()}" if error else "The recogniser was closed.")
            if error:
                self.failures.failed()
                log.warning("%s (%d utterances)", said, len(batch))
            for who, given in batch:
                soon(who.on_failure, given, said)
        else:
            heard = done.result()
            (self.failures.worked if all(each.finite for each in heard) else self.failures.failed)()
            for (who, given), each in zip(batch, heard, strict=True):
                if each.finite:
                    soon(who.on_result, given, each.tokens)
                else:
                    soon(who.on_failure, given, EngineError(NOT_FINITE))
        soon(self._again)

    def _again(self) -> None:
        """The next step, once all have heard of the last and may have asked again."""
        self._running = []
        self._next()
