"""The caller's side of one call: the VAD front end, and the utterance that is being heard.

The VAD front end makes facts of sound, and the recogniser makes facts of words. `TurnTaking` feeds them to the turn
machine, which says what is to be done.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from voicepipe.audio import RATE, Block, samples_to_ms
from voicepipe.base.errors import EngineError
from voicepipe.base.round_robin import owned_by
from voicepipe.base.words import joined, running
from voicepipe.call.call_context import CallContext
from voicepipe.call.call_tasks import CallTasks
from voicepipe.call.utterance import RecogniserWait, Utterance
from voicepipe.call.vad_front_end import MissingSound, TurnTaking, VadFrontEnd
from voicepipe.call_settings import CallSettings, SemanticVad, ServerVad
from voicepipe.config import Config
from voicepipe.conversation.events import SpeechStarted, SpeechStopped, WordsHeard
from voicepipe.conversation.timing import TurnRecord
from voicepipe.engines.base import AsrHints, AsrStream, Hypothesis
from voicepipe.languages.known import language_of
from voicepipe.turn.endpoint import Endpointer, Evidence, FixedSilence
from voicepipe.turn.facts import Fact, Partial, Words
from voicepipe.turn.no_input import LineSound

log = logging.getLogger(__name__)
REMEMBERED = 2 * RATE
"""Samples of unnoticed speech that a client's commit can still have recognised; `VadFrontEnd` keeps as many."""


class Hearing:
    """The caller's side of one call.

    It feeds the sound to the VAD front end and to the recogniser, opens and ends utterances, and has the endpointer
    judge their words. The resulting facts go to `turns`.
    """

    def __init__(
        self, context: CallContext, config: Config, settings: CallSettings, tasks: CallTasks, turns: TurnTaking
    ) -> None:
        self.utterance: Utterance | None = None
        self.last: Utterance | None = None
        """The last committed utterance, which may yet be reopened."""
        self._config, self._tasks, self._turns = config, tasks, turns
        self._call_id, self._ids, self._emit = context.call_id, context.ids, context.emit
        self._clock, self._asked = context.clock, context.history.said_last
        self._engines = engines = context.engines
        self.sound = LineSound()
        self._front_end = VadFrontEnd(
            engines.windows.of(engines.vad.stream()), config.vad, context.playout.reference, self
        )
        self._waits = RecogniserWait(engines.patience, config.ladder, context.clock)
        self._committed_to = 0
        """Sample up to which the caller's sound belongs to past turns."""
        self.gaps = MissingSound(self._front_end, turns, context.clock)
        self.configure(settings)

    def configure(self, settings: CallSettings) -> None:
        """Use these settings from the next question to the endpointer on."""
        self._settings = settings
        detection, vad, endpoint = settings.turn_detection, self._config.vad, self._config.endpoint
        if isinstance(detection, ServerVad):
            self._endpointer: Endpointer = FixedSilence(endpoint, detection.silence_ms)
            vad = vad.as_asked(detection)
        else:
            words = language_of(settings.agent.language).turn
            self._endpointer = Endpointer(endpoint, detection.eagerness if detection else "auto", words)
        self._front_end.configure(vad)

    @property
    def now(self) -> int:
        """End of the sound heard so far, in samples since the answer."""
        return self._front_end.now

    @property
    def uncommitted_ms(self) -> float:
        """Milliseconds of the caller's sound since the last commit."""
        return samples_to_ms(self._front_end.now - self._committed_to)

    # Sound in.

    def hear(self, block: Block) -> None:
        """As `SoundListener.hear`: a block has come. `judged` follows."""
        self.gaps.over()
        self._front_end.hear(block)

    def judged(self, block: Block, fact: Fact | Exception | None) -> None:
        """As `VadListener.judged`: the turn machine gets the fact, and the recogniser the sound."""
        if self._tasks.over:
            return
        if isinstance(fact, Exception):
            return self._tasks.fail(fact)
        try:
            self.sound.push(block.pcm)
            if self.utterance:
                self.utterance.hear(block.pcm)
            if fact:
                self._turns.feed(fact)
            self._turns.block_heard()
        except Exception as error:  # This call's own; others are heard in the same turn of the loop.
            self._tasks.fail(error)

    # The utterance.

    def open(self) -> None:
        """Start an utterance at the burst of voice that was just noticed."""
        self._open_at(self._front_end.started)

    def utterance_to_commit(self) -> Utterance:
        """The utterance that a client's commit ends: the one that is being heard, or a silent one if there is none."""
        if self.utterance is None:
            self._open_at(max(self._committed_to, self._front_end.now - REMEMBERED))
        assert self.utterance is not None
        return self.utterance

    def _open_at(self, start: int) -> None:
        item_id, engines = self._ids.new("item"), self._engines
        agent = self._settings.agent
        hints = AsrHints(
            agent.language, self._asked(), agent.vocabulary, eager=agent.reads_ahead, languages=agent.languages
        )

        def make_stream() -> AsrStream:
            with owned_by(self._call_id):
                return engines.asr.stream(partial(self._partial, item_id), hints)

        sound = self._front_end.since(start, self._committed_to)
        self.utterance = Utterance(
            item_id=item_id,
            start=start,
            heard_from=self._front_end.now - sound.size,
            began=self._clock(),
            stream=make_stream(),
            record=TurnRecord(self._ids.new("turn")),
            spawn=self._tasks.spawn,
            language=agent.language,
            make_stream=make_stream,
            waits=self._waits,
            past=sound.size,
            voice=engines.turn.stream() if engines.turn else None,
        )
        self.utterance.hear(sound)

    def announce(self, utterance: Utterance | None = None) -> None:
        """Emit that the caller speaks; over a reply this waits until the reply is cut."""
        utterance = utterance or self.utterance
        if utterance and not utterance.announced:
            utterance.announced = True
            self._emit(SpeechStarted(utterance.item_id, round(samples_to_ms(utterance.heard_from))))
            if words := utterance.agreement.committed:
                self._emit(WordsHeard(utterance.item_id, running(words)))

    def announce_end(self, utterance: Utterance, last_voiced: int) -> None:
        """Emit that the caller has stopped, at sample `last_voiced`."""
        self._emit(SpeechStopped(utterance.item_id, round(samples_to_ms(last_voiced))))

    def close(self) -> Utterance:
        """End the utterance and its recognition; it is now the last turn. The next voice starts a new one."""
        utterance = self.utterance
        assert utterance is not None
        self.stop_settling()
        utterance.cancel()
        self.leave(utterance)
        return utterance

    def leave(self, utterance: Utterance) -> None:
        """End the utterance, which is now the last turn. The recogniser may still be asked for its words."""
        self.utterance, self.last = None, utterance
        utterance.end = self._front_end.last_voiced
        self._committed_to = self._front_end.now
        by_request = not isinstance(self._settings.turn_detection, SemanticVad)
        utterance.timed(self._front_end.arrived(utterance.end), by_request=by_request)
        self._front_end.forget()

    def drop(self, last: Utterance | None) -> None:
        """End the utterance, which was a cough or nothing: no turn comes of it. `last`: the turn that may yet be
        reopened."""
        utterance = self.close()
        self.last = last
        if utterance.announced:
            self.announce_end(utterance, self._front_end.last_voiced)

    def clear(self) -> None:
        """Forget the sound since the last commit."""
        self._committed_to = self._front_end.now

    def forget(self) -> None:
        """A reply is over: voice under it of which no utterance came was none."""
        if not self.utterance:
            self._front_end.forget()

    def reopen(self) -> None:
        """The utterance goes on with the last turn."""
        if self.utterance and self.last:
            self.utterance.before, self.utterance.record.continues = self.last.turn_words, True
        self.announce()

    def let_go(self) -> None:
        """The call has run, or never will: cut the reference cycles. The utterance's factory of streams refers to us,
        and so does the VAD front end."""
        if self.utterance:
            self.utterance.cancel()
        self.utterance = self.last = None
        self._front_end.let_go()

    # Its words.

    def _partial(self, item_id: str, hypothesis: Hypothesis) -> None:
        utterance = self.utterance
        if utterance is None or utterance.item_id != item_id:
            return
        stable, others = utterance.take_partial(hypothesis.text, hypothesis.until, lags=hypothesis.lags)
        utterance.partial_spoken = hypothesis.language
        if stable and utterance.announced:
            self._emit(WordsHeard(utterance.item_id, stable))
        interrupts = self._settings.agent.is_interrupted(running(utterance.agreement.committed))
        if others or interrupts:
            self._turns.feed(Partial(interrupts))

    def guess(self) -> str:
        """The words of the turn so far; "" where they cannot be all, or are none.

        Where tools only read, any words will do: what these tools find for the first ones is mostly what is wanted, and
        is there sooner.
        """
        utterance = self.utterance
        if utterance is None:
            return ""
        words = joined(utterance.before, utterance.partial)
        if self._settings.agent.reads_ahead:
            return words
        return words if self.partial_is_whole and self._endpointer.may_end(words, self._asked()) else ""

    @property
    def partial_is_whole(self) -> bool:
        """Whether no word of the partial is missing, as far as is known."""
        return self.utterance is not None and self.utterance.may_be_all(self._front_end.last_voiced)

    def settle(self) -> None:
        """Ask the recogniser for its best words. `Words` follows, unless the voice comes back before."""
        assert self.utterance is not None
        self.utterance.settling = self._tasks.spawn(self._settle(self.utterance))

    def stop_settling(self) -> None:
        """Stop judging whether the turn is over: the voice came back, or the turn has ended."""
        if self.utterance and self.utterance.settling:
            self.utterance.settling.cancel()

    async def _settle(self, utterance: Utterance) -> None:
        utterance.record.forget("settle", "words")
        utterance.record.stamp("settle", self._clock())
        async with aclosing(self._evidence(utterance)) as evidence:
            async for heard, failed in evidence:
                if self.utterance is not utterance or utterance.settling is not asyncio.current_task():
                    return  # The voice came back, or the client was faster, or what came before ended the turn.
                self._weigh(utterance, heard, failed)

    async def _evidence(self, utterance: Utterance) -> AsyncGenerator[tuple[Evidence, bool], None]:
        """What is known of the words, each time that more is known, and whether the recogniser failed."""
        try:
            settling = utterance.settle()
            async with aclosing(settling):
                async for heard in settling:
                    yield heard, False
        except EngineError as error:
            utterance.end = self._front_end.last_voiced
            log.error("%s: the last words may be missing: %s", self._call_id, error)
            yield Evidence(utterance.stands_in(error)), True

    def _weigh(self, utterance: Utterance, heard: Evidence, failed: bool) -> None:
        """Feed the words and the silence that they require."""
        utterance.record.stamp("words", self._clock())
        utterance.text = heard.text
        utterance.end = self._front_end.last_voiced
        self._turns.words_known()
        verdict = self._endpointer.judge(replace(heard, text=utterance.turn_words, asked=self._asked()))
        utterance.record.confident, utterance.record.endpoint = verdict.confident, verdict.reason
        interrupts = self._settings.agent.is_interrupted(utterance.text)
        self._turns.feed(Words(utterance.turn_words, verdict.required_ms, interrupts, failed))
