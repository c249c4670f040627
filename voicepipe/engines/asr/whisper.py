"""`whisper`: faster-whisper, streaming. One model for all calls, on a CPU or a GPU.

Whisper reads a recording; it does not listen. So the sound of an utterance is read again and again while it grows. It
is read at each gap of the voice, which may be the turn's end: by the time at which the turn machine asks for the words,
the pass has mostly half of its time behind it. Where there is no gap, it is read now and then for partials.
"""

import asyncio
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from voicepipe.audio import RATE, Pcm, ms_to_samples
from voicepipe.base.errors import EngineError
from voicepipe.base.round_robin import owner
from voicepipe.base.worker import Worker
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.asr.whisper_model import LONGEST, LoadedWhisper, Passage, WhisperReading, passes_at_a_time
from voicepipe.engines.asr.whisper_schedule import Passes, Purpose
from voicepipe.engines.asr.whisper_sound import WhisperSound
from voicepipe.engines.asr.whisper_words import DICTATED, Transcript, is_dictated
from voicepipe.engines.base import NO_HINTS, AsrHints, Hypothesis, OnPartial
from voicepipe.engines.hosting.supervised import IN_PROCESS, SupervisedEngine
from voicepipe.engines.hosting.threaded import RecogniserCore, loaded
from voicepipe.languages.known import language_of
from voicepipe.languages.written_language import LikelyLanguage

LONG = ms_to_samples(12_000)
"""Sound of words that stand is dropped when there is more than this: reading it all again would take too long."""
UNSURE = ms_to_samples(3_000)
"""The end of a full window is read again with what follows it."""
ASKED_DIGITS = 3
"""Digits in a row that are dictated, where a telephone number was asked for."""
EAGER = 2
"""Where partials are worth more, so many times as many are made."""
GAP = ms_to_samples(40)
"""A gap of this length is worth a pass: it is the shortest that spans two frames. Half of such gaps are inside a word.
With passes at gaps of 20 ms, too, they slow each other down, and callers have the words no sooner (46 turns on two
cores)."""


class WhisperAsr(SupervisedEngine[RecogniserCore[Passes, LoadedWhisper]]):
    """The engine `whisper`. Implements `base.Asr`. A model that fails repeatedly is loaded again.

    `config.detect_language`: utterances may be in any language; otherwise they are in the stream's, if the model knows
    it.
    """

    def __init__(self, config: WhisperConfig) -> None:
        super().__init__("recogniser", self._load, IN_PROCESS)
        self._config = config

    def stream(self, on_partial: OnPartial, hints: AsrHints = NO_HINTS) -> "WhisperStream":
        """Begin an utterance. While the model is loaded again, calls that go on have streams that hear nothing and say
        why."""
        if self.last is None:
            raise EngineError("WhisperAsr was not started.")
        every = ms_to_samples(self._config.partial_ms)
        several = len(hints.languages) > 1
        language = None if self._config.detect_language and not several else hints.language
        return WhisperStream(self.last.queue, on_partial, language, every, hints)

    async def _load(self) -> RecogniserCore[Passes, LoadedWhisper]:
        """A model that has run every kind of pass once. Raises EngineMissing, EngineError."""
        # It gets no more passes than it has threads; `Passes` has the queue.
        worker = Worker("whisper", passes_at_a_time(self._config), told=False)
        model = await loaded(worker, partial(LoadedWhisper, self._config))
        silence, stall_s = Passage(np.zeros(RATE, np.int16)), self._config.stall_s
        read = partial(each_vocabulary, model.read)
        passes = Passes(worker, read, model.batch, time.monotonic, silence, stall_s, model.passes)
        return RecogniserCore(worker, passes, model)


def each_vocabulary(
    read: Callable[[list[Passage]], list[WhisperReading]], passages: list[Passage]
) -> list[WhisperReading]:
    """What `read` makes of passages, those of each vocabulary in a pass of their own: CTranslate2 takes several prompts
    only where all have one length. As LoadedWhisper.read: empty if nobody wants the words any more."""
    several = {passage.vocabulary for passage in passages}
    if len(several) == 1:
        return read(passages)
    if not any(passage.wanted is None or passage.wanted() for passage in passages):
        return []
    readings = dict[int, WhisperReading]()
    for vocabulary in several:
        numbers = [number for number, passage in enumerate(passages) if passage.vocabulary == vocabulary]
        made = read([replace(passages[number], wanted=None) for number in numbers])
        readings.update(zip(numbers, made, strict=True))
    return [readings[number] for number in range(len(passages))]


class WhisperStream:
    """One utterance, as Whisper reads it. Implements `base.AsrStream` and `whisper_schedule.PassClient`.

    `language`: None as long as it is not known; `every`: samples from one partial to the next.
    """

    def __init__(
        self, passes: Passes, on_partial: OnPartial, language: str | None, every: int, hints: AsrHints = NO_HINTS
    ) -> None:  # fmt: skip
        self.over = self._finishing = False
        self.owner = owner()
        self._passes = passes
        self._on_partial = on_partial
        self._language = language
        self._languages = hints.languages if len(hints.languages) > 1 else ()
        self._likely = LikelyLanguage()
        self._vocabulary = hints.vocabulary
        self._every = every // (EAGER if hints.eager else 1)
        self._sound = WhisperSound()
        self._transcript = Transcript()
        self._delivered = ""
        turn = language_of(hints.language).turn
        self._is_digit = turn.is_digit
        self._dictated = ASKED_DIGITS if turn.wants_digits(hints.asked) else DICTATED
        """Digits in a row from which on the utterance is read with a wide window."""
        self._wide = False
        self._full_stop: float | None = None
        """Probability that a sentence ends after the latest words."""
        self._covered = 0
        """Samples fed that have been read."""
        self._latest = 0
        """Position at which the sound of the latest words ends."""
        self._begun = 0
        """Position at which the sound ended when the latest pass began."""
        self._in_gap = False
        """A pass was asked for, because the voice paused."""
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        """Positions up to which words are waited for, and the waiting futures."""

    def feed(self, pcm: Pcm) -> None:
        if self.over:
            return
        self._sound.feed(pcm)
        if self._in_gap and not self._sound.gap and not self._waiting:
            self._passes.withdraw(self)  # The voice is back before the pass began.
        self._in_gap = self._sound.gap >= GAP
        unread = self._sound.end - self._begun
        if not self._sound.unread or unread <= 0:
            return
        if self._in_gap:
            self._passes.ask(self, Purpose.GAP)
        elif unread >= self._every and not (self._passes.reading(self) or self._sound.gap):
            self._passes.ask(self)

    async def settle(self) -> Hypothesis:
        if self._sound.unread and not self.over:
            await self._read()
        until = self._covered if self._sound.unread else self._sound.fed
        return Hypothesis(self._transcript.text, until, self._full_stop, language=self._likely)

    async def finish(self) -> Hypothesis:
        self._finishing = True
        try:
            return await self.settle()
        finally:
            self.cancel()

    def cancel(self) -> None:
        if not self.over:
            self._passes.end(self, heard=bool(self._transcript.text))
        self.over = True
        for _, waiting in self._waiting:
            waiting.cancel()

    async def _read(self) -> None:
        """Return once all that has been fed is read."""
        wanted = (self._sound.end, asyncio.get_running_loop().create_future())
        self._waiting.append(wanted)
        self._ask_for(self._sound.end)
        try:
            await wanted[1]
        finally:
            self._waiting.remove(wanted)
            if not self._waiting:
                self._passes.withdraw(self)

    def _ask_for(self, upto: int) -> None:
        """Ask for a pass that reads `upto` there, unless one that does is under way."""
        if self._begun < upto or not self._passes.reading(self):
            self._passes.ask(self, Purpose.WORDS)

    # For the passes.

    def next_input(self) -> Passage:
        """As `PassClient.next_input`."""
        sound = self._sound
        pcm, end, voiced = sound.window(LONGEST)
        self._begun = sound.end
        upto = min(sound.end, sound.start + pcm.size)
        wide, timed = self._wide and (self._in_gap or bool(self._waiting)), pcm.size > LONG
        # A pass for a long sound tells which words' sound may be dropped.
        wanted = None if timed else partial(self._still_wanted, sound.end, self._in_gap)
        return Passage(
            pcm, voiced, end, self._language, self._languages, wide, timed, self._vocabulary, wanted, sound.start,
            upto, sound.fed,
        )  # fmt: skip

    def _still_wanted(self, end: int, in_gap: bool) -> bool:
        """Whether anybody wants the words up to `end`. Asked on another thread."""
        if self.over:
            return False
        if not self._delivered or any(upto <= end for upto, _ in tuple(self._waiting)):
            return True  # The first words tell soonest of an interruption.
        # A later pass has begun, or the voice is back behind the gap.
        return not (self._begun > end or (in_gap and self._sound.end > end))

    def on_abandoned(self, passage: Passage) -> None:
        """As `PassClient.on_abandoned`: the sound is still to be read."""
        if self._begun == passage.upto:
            self._begun = self._sound.read
        self._again()

    def on_result(self, passage: Passage, reading: WhisperReading) -> None:
        """As `PassClient.on_result`."""
        if self.over or passage.upto < self._latest:
            return  # A pass that began later was faster.
        if passage.start != self._sound.start:  # Its first words are dropped.
            return self._again()
        if self._languages:
            self._likely = reading.language.likely  # Each pass has heard more of it.
        elif reading.language.sure:
            self._language = reading.language.name
        more, text = self._transcript.push(reading.words), self._transcript.text
        self._covered, self._latest = passage.fed, passage.upto
        if reading.words or not text:  # Otherwise the last words are some whose sound has been dropped.
            self._full_stop = reading.full_stop
        if not (passage.wide or passage.timed) and is_dictated(text, self._is_digit, self._dictated):
            self._read_wide()
        else:
            self._sound.read = passage.upto
            if passage.timed:
                self._drop(passage, reading)
            self._answer(passage.upto)
        if not self._finishing and (more or text != self._delivered or self._in_gap):
            self._delivered = text
            self._on_partial(Hypothesis(text, passage.fed, lags=True, language=self._likely))

    def on_failure(self, error: Exception) -> None:
        """As `PassClient.on_failure`. Who waits gets the error; nobody misses a partial."""
        for _, waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(error)

    def _answer(self, read: int) -> None:
        """Who waits for words up to `read` has them; for the others more has to be read."""
        if not self._in_gap:
            self._passes.withdraw(self)
        for upto, waiting in self._waiting:
            if upto <= read and not waiting.done():
                waiting.set_result(None)
        self._again()

    def _read_wide(self) -> None:
        """Read again with a wide window: only then do digits count as read."""
        self._wide = True
        if self._in_gap:
            self._begun = self._sound.read
        self._again()

    def _again(self) -> None:
        if ends := [upto for upto, waiting in self._waiting if not waiting.done()]:
            self._ask_for(max(ends))

    def _drop(self, passage: Passage, reading: WhisperReading) -> None:
        """Forget the sound of words that stand; where more than a window waits, the window's."""
        count, at = self._transcript.committed, 0
        if passage.pcm.size >= LONGEST:
            at = LONGEST - UNSURE
            count = bisect_right(reading.ends, at)
        if count and reading.ends[count - 1] > at - UNSURE:
            at = reading.ends[count - 1]
        if at:
            self._transcript.drop(count)
            self._sound.drop(self._sound.start + at)
