"""What the caller is saying, while it is said: its sound on the way to the recogniser, and the words so far."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from voicepipe.audio import RATE, Pcm, samples_to_ms
from voicepipe.base.errors import EngineDead, EngineError, EngineStalled
from voicepipe.base.words import joined, running, written
from voicepipe.call.call_tasks import Spawn
from voicepipe.config import LadderConfig
from voicepipe.conversation.timing import TurnRecord
from voicepipe.engines.base import AsrStream, Hypothesis, TurnStream
from voicepipe.languages.known import language_of
from voicepipe.languages.written_language import LikelyLanguage
from voicepipe.turn.agreement import Agreement
from voicepipe.turn.endpoint import Evidence
from voicepipe.turn.patience import Patience
from voicepipe.turn.pitch import Pitch

T = TypeVar("T")
log = logging.getLogger(__name__)
SETTLE_MS = 30_000.0
"""How long the words are waited for where `ladder.words_ms` is 0."""
SPARE_S = 0.3
"""A caller whose sound is no further ahead of real time is a person who waits."""
LONGEST = 120 * RATE
"""Samples that one stream of the recogniser hears: then another goes on with the same utterance. What recognisers keep
of a voice grows with its length, and some voices never end: a radio, a queue's music."""
MAX_PACE = 1.2
"""Input this much faster than real time cannot be timed: the turn is answered, not measured."""
COVERS = RATE // 5
"""Partial words that reach so near to the last voice, in samples, can stand in for the final ones."""
OPINION_S = 0.03
"""Seconds that the turn model is waited for beyond the words. What it says later counts when it comes."""
MakeStream = Callable[[], AsrStream]
"""Makes a new stream of the recogniser's."""


async def opinion(asked: Awaitable[float | None]) -> float | None:
    """The judgement of an engine other than the recogniser. The call can do without it: if it fails, there is none."""
    try:
        return await asked
    except Exception as error:  # Its words alone: its traceback would keep the call where a log keeps records.
        log.error("nobody tells whether the turn is over: %s", str(error))
        return None


class RecogniserWait:
    """The waiting of one call for its recogniser. `patience` is shared by all calls of that recogniser."""

    def __init__(
        self, patience: Patience | None = None, config: LadderConfig | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.clock = clock
        self._patience = patience or Patience()
        self._config = config or LadderConfig()

    async def for_words(self, asked: Awaitable[T], ahead_s: float) -> T:
        """The recogniser's answer.

        Raises EngineStalled: it took several times as long as it mostly does, and `ahead_s` for sound that came faster
        than real time. Raises EngineError: the recogniser failed.
        """
        config, began = self._config, self.clock()
        limit_ms = SETTLE_MS
        if config.words_ms:
            limit_ms = self._patience.ms(config.words_ms, config.fallback_ms or SETTLE_MS)
        try:
            async with asyncio.timeout(limit_ms / 1000 + ahead_s):
                said = await asked
        except TimeoutError:
            self._patience.took(limit_ms)
            raise EngineStalled(f"The recogniser has not answered for {limit_ms / 1000 + ahead_s:.1f} s.") from None
        if ahead_s < SPARE_S:
            self._patience.took(1000 * (self.clock() - began))
        return said


@dataclass(slots=True)
class Utterance:
    """What the caller says from the first voiced sample to the commit, with its recogniser's stream."""

    item_id: str
    start: int
    """First voiced sample."""
    heard_from: int
    """First sample that the recogniser got: the prefix before it."""
    began: float
    """When it began, in monotonic seconds."""
    stream: AsrStream
    record: TurnRecord
    spawn: Spawn
    make_stream: MakeStream | None = None
    """Makes the next stream, where this one has heard LONGEST."""
    waits: RecogniserWait = field(default_factory=RecogniserWait)
    language: str = "en"
    """BCP 47: what the caller is expected to speak."""
    past: int = 0
    """Samples of its sound that were there already when it began."""
    voice: TurnStream | None = None
    """The turn model's stream of it; None: there is no turn model."""
    end: int = 0
    """Last voiced sample, once the words were asked for or the turn is over."""
    before: str = ""
    """The words of the turn that this one reopened."""
    partial: str = ""
    """The words after `before`, as far as they are recognised while the caller speaks."""
    text: str = ""
    """The words after `before`, when they were last asked for; frozen while a silence lasts."""
    spoken: LikelyLanguage = LikelyLanguage()
    """Its language, where the recogniser tells it; of the words that were last asked for."""
    partial_spoken: LikelyLanguage = LikelyLanguage()
    """The same, of the partial."""
    announced: bool = False
    agreement: Agreement = field(default_factory=Agreement)
    pitch: Pitch = field(default_factory=Pitch)
    settling: "asyncio.Future[None] | None" = None
    _heard: int = 0
    """Samples heard in all."""
    _stream_from: int = 0
    """How many of them went to streams before this one."""
    _covered: int = 0
    """Sample of the call up to which `partial` goes."""
    _lags: bool = False
    """See `engines.base.Hypothesis.lags`."""
    _part: str = ""
    """The part of `partial` that the present stream has heard."""
    _earlier: str = ""
    """The words of earlier streams. Those of the last one are as they were when it was left, while `_left` waits."""
    _left: "asyncio.Future[None] | None" = None

    @property
    def audio_ms(self) -> int:
        """Its length in milliseconds, once it is over."""
        return max(0, round(samples_to_ms(self.end - self.start)))

    @property
    def partial_ms(self) -> int:
        """How much of it the partial covers, in milliseconds."""
        return max(0, round(samples_to_ms(self._covered - self.start)))

    @property
    def turn_words(self) -> str:
        """The words of the whole turn: `before` and `text`."""
        return joined(self.before, self.text)

    def take_partial(self, text: str, until: int = 0, *, lags: bool = False) -> tuple[str, bool]:
        """Take a partial: the words of this stream up to its sample `until`. Returns the words that are stable from
        here on, and whether any word is another, or these may be all while those before could not."""
        self._lags = lags
        language = language_of(self.language)
        others = lags or language.as_said(text) != language.as_said(self._part)
        self._part, self.partial = text, self._all(text)
        self._covered = self.heard_from + self._stream_from + until
        return running(self.agreement.push(list(written(text)))), others

    def may_be_all(self, end: int) -> bool:
        """Whether no word of the partial is missing, as far as is known. `end`: sample of the call at which the voice
        ended."""
        return bool(self.partial) and (not self._lags or self._covered >= end - COVERS)

    def stands_in(self, error: EngineError) -> str:
        """The words of the partial, if the recogniser failed to give the final ones in time and the partial seems to
        hold all that was said; else "". The beginning of a sentence would be answered as if it were all. Their language
        is the partial's, too."""
        self.spoken = self.partial_spoken
        late = isinstance(error, EngineStalled | EngineDead)
        return self.partial if late and self._covered >= self.end - COVERS else ""

    def hear(self, pcm: Pcm) -> None:
        """Take more of the caller's sound."""
        if self.make_stream and self._heard - self._stream_from >= LONGEST:
            self._go_on(self.make_stream())
        self._heard += pcm.size
        self.stream.feed(pcm)
        self.pitch.push(pcm)
        if self.voice:
            self.voice.feed(pcm)

    async def settle(self) -> AsyncGenerator[Evidence, None]:
        """The words of all sound so far, without `before`, and the evidence for and against their being all; again once
        the turn model has judged, if that is slower. Raises EngineError: the recogniser failed."""
        judging = self.spawn(opinion(self._complete()))
        try:
            hypothesis = await self.waits.for_words(self._settled(), self._ahead_s)
            text, fall = self._all(hypothesis.text), self.pitch.log_odds()
            self.spoken = hypothesis.language
            await asyncio.wait([judging], timeout=OPINION_S)
            complete = judging.result() if judging.done() else None
            yield Evidence(text, fall, complete, hypothesis.full_stop)
            if not judging.done():
                yield Evidence(text, fall, await judging, hypothesis.full_stop)
        finally:
            judging.cancel()

    def timed(self, voice_ended: float, *, by_request: bool) -> None:
        """The utterance is over; its last voiced sample arrived at the monotonic second `voice_ended`."""
        self.record.words, self.record.by_request = self.turn_words, by_request
        self.record.stamp("voice_ended", voice_ended)
        passed_s = self.waits.clock() - self.began
        self.record.unpaced = (self._heard - self.past) / RATE > MAX_PACE * passed_s + SPARE_S

    async def finish(self) -> None:
        """Ask for the final words, which `text` then holds; those of the partial if none come in time. Raises
        EngineError: there are none at all."""
        try:
            hypothesis = await self.waits.for_words(self._finished(), self._ahead_s)
            self.text, self.spoken = self._all(hypothesis.text), hypothesis.language
        except EngineError as error:
            self.text = self.stands_in(error)
            if not self.text:
                raise
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Stop hearing and recognising. Safe to call twice."""
        self.stream.cancel()
        if self._left:
            self._left.cancel()

    @property
    def _ahead_s(self) -> float:
        """Seconds by which its sound came faster than real time, which a recogniser may take to hear it."""
        return max(0.0, (self._heard - self.past) / RATE - (self.waits.clock() - self.began))

    def _all(self, text: str) -> str:
        return joined(self._earlier, text)

    async def _settled(self) -> Hypothesis:
        if self._left:
            await asyncio.wait([self._left])
        return await self.stream.settle()

    async def _finished(self) -> Hypothesis:
        if self._left:
            await asyncio.wait([self._left])
        return await self.stream.finish()

    def _go_on(self, stream: AsrStream) -> None:
        """Go on with a new stream; the words of the one before are its last."""
        if self._left:
            self._left.cancel()  # Its words have been due since LONGEST ago.
        left, before, words = self.stream, self._earlier, self._part
        self._earlier = self._all(words)
        self.stream, self._stream_from, self._part, self.agreement = stream, self._heard, "", Agreement()
        self._left = self.spawn(self._last_words(left, before))
        self._left.add_done_callback(lambda done: left.cancel())  # also where it is cancelled before it has begun

    async def _last_words(self, stream: AsrStream, before: str) -> None:
        try:
            self._earlier = joined(before, (await stream.finish()).text)
        except Exception as error:  # Also one that no engine should raise: the call can do without these words.
            log.error("the end of %g s of voice is not recognised: %s", LONGEST / RATE, error)

    async def _complete(self) -> float | None:
        try:
            return await self.voice.complete() if self.voice else None
        except EngineError as error:
            log.error("the turn model is not heard: %s", error)
            return None
