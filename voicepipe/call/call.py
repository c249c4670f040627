"""ONE call: the main path. The caller's sound goes to the ear, its facts to the turn machine; actions are done here.

Read `line.py`, `turn/machine.py`, this file, `dialogue.py`, `reply.py` and `playout.py`, in this order. All of it
happens on one event loop, and `_feed` is synchronous: what follows from one fact comes before the next.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from voicepipe.agent import CallSettings, SemanticVad, ServerVad
from voicepipe.audio import RATE, Block, samples_to_ms
from voicepipe.call.dialogue import Dialogue
from voicepipe.call.ear import Ear
from voicepipe.call.errands import BeginTool
from voicepipe.call.playout import Playout
from voicepipe.call.reply import Reply
from voicepipe.call.speech import Speaker
from voicepipe.call.studio import Studio
from voicepipe.call.utterance import Utterance, Waits
from voicepipe.config import Config
from voicepipe.engines.base import AsrStream, Engines, Hypothesis
from voicepipe.engines.fair import owned_by
from voicepipe.errors import EngineError, cause
from voicepipe.line import Line
from voicepipe.shown import shown
from voicepipe.tasks import TaskGroup
from voicepipe.turn.endpoint import Endpointer, Evidence, Verdict
from voicepipe.turn.events import CallEnded, CallEvent, Item, SpeechStarted, SpeechStopped, WordsHeard
from voicepipe.turn.facts import Action, Cleared, Committed, Fact, Partial, ReplyEnded, Replying, Words
from voicepipe.turn.known import May
from voicepipe.turn.machine import TurnMachine
from voicepipe.turn.no_input import NoInput
from voicepipe.turn.timing import TurnRecord

log = logging.getLogger(__name__)
REMEMBERED = 2 * RATE
"""Samples that the ear remembers: so much of unnoticed speech a client's commit can still have recognised."""
GAP_S = 1.0
"""A client that sends nothing for so long has stopped sending: networks rarely stall for as long."""


class Call:
    """`emit` gets every CallEvent, on the event loop, in order. What a client may ask for is in `control.py`."""

    def __init__(
        self,
        call_id: str,
        line: Line,
        settings: CallSettings,
        engines: Engines,
        config: Config,
        begin_tool: BeginTool,
        emit: Callable[[CallEvent], None],
        clock: Callable[[], float],
    ) -> None:
        self.id = call_id
        self.line = line
        self._engines = engines
        self._config = config
        self.emit = emit
        self._clock = clock
        self._playout = Playout(line, clock, config.turn.duck_db)
        speaker = Speaker(engines.tts, line.out_rate, settings.agent.language, engines.made_ahead)
        studio = Studio(call_id, engines, speaker, self._playout, begin_tool, config.ladder, clock, emit)
        self.ids = studio.ids
        self.dialogue = Dialogue(studio, settings, self.spawn, self._reply_ended)
        ask = partial(engines.windows.ask, engines.vad.stream())
        self.ear = Ear(ask, config.vad, self._playout.reference, self._heard)
        self._machine = TurnMachine(config.turn)
        self._facts: deque[Fact] = deque()
        """Those that are not dealt with yet: what an action brings about comes after all that its fact called for."""
        self._acting = False
        self.utterance: Utterance | None = None
        self.committed_to = 0
        """Sample up to which the caller's sound has been dealt with."""
        self.greeting: Reply | None = None
        """The greeting, which a client's own reply may replace."""
        self._last: Utterance | None = None
        """The committed one, which may yet be reopened."""
        self._waits = Waits(engines.patience, config.ladder, clock)
        self._group = TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self.over = False
        """The line has ended: what is asked from now on is not begun."""
        self._last_block_at = clock()
        self.no_input = NoInput()
        self._ending = ""
        """Why we hang up."""
        self.configure(settings)

    async def run(self) -> None:
        """Answer, and go on until either side hangs up. CallEnded is the last event, whatever happens."""
        reason, detail = "error", ""
        try:
            async with self._group:
                for job in (self._playout.run(), self._greet(), self._mind_gaps()):
                    self.spawn(job)
                self.dialogue.rehearse()
                await self.line.listen(self._hear)
                reason, self.over = self._ending or "caller", True
                self.dialogue.studio.errands.leave()  # A tool that is over now begins no reply: it would never end.
                self.dialogue.stop("client_cancelled")
                self.dialogue.discard()
                for task in self._tasks:
                    task.cancel()
        except* Exception as errors:
            detail = shown(cause(errors), f"call {self.id}")
        finally:
            self.over = True
            self.dialogue.studio.errands.leave()
            if self.utterance:
                self.utterance.cancel()
            await self.line.hang_up()
            self.emit(CallEnded(reason, detail))

    def let_go(self) -> None:
        """It has run, or never will: drop what knows it. In a circle, its sound would stay until the collector came."""
        self.utterance = self._last = self.greeting = None
        self.ear.let_go()
        vars(self).pop("dialogue", None)

    def _hear(self, block: Block) -> None:
        self._last_block_at = self._clock()
        self.ear.hear(block)

    def _heard(self, block: Block, fact: Fact | Exception | None) -> None:
        if self.over:
            return
        if isinstance(fact, Exception):
            return self._fail(fact)
        try:
            if self.utterance:
                self.utterance.hear(block.pcm)
            if fact:
                self._feed(fact)
            self._watch_quiet()
        except Exception as error:  # This call's own; others are heard in the same turn of the loop.
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        try:
            self.spawn(_failing(error))
        except RuntimeError:  # Something else of this call has failed already, and its group is ending.
            log.warning("%s: %s", self.id, error)

    def _feed(self, fact: Fact) -> None:
        self._facts.append(fact)
        if self._acting:
            return
        self._acting = True
        try:
            while self._facts:
                for action in self._machine.on(self._facts.popleft(), self._may):
                    ACTIONS[action](self)
        finally:
            self._acting = False

    @property
    def _may(self) -> May:
        detection = self.dialogue.settings.turn_detection
        interrupts = detection is None or detection.interrupt_response
        return May(answers=self.dialogue.answers, interrupts=interrupts, ends=detection is not None)

    # The caller's turn.

    def _open_at(self, start: int) -> None:
        item_id = self.ids.new("item")
        language, asked = self.dialogue.settings.agent.language, self.dialogue.asked

        def listen() -> AsrStream:
            with owned_by(self.id):
                return self._engines.asr.stream(partial(self._partial, item_id), language=language, asked=asked)

        record, sound = TurnRecord(self.ids.new("turn")), self.ear.since(start, self.committed_to)
        voice = self._engines.turn.stream() if self._engines.turn else None
        began = self.ear.now - sound.size, self._clock()
        self.utterance = Utterance(item_id, start, *began, listen(), record, listen, self._waits, sound.size, voice)
        self.utterance.hear(sound)
        self.no_input.back(self.ear.now)

    def _announce(self, utterance: Utterance | None = None) -> None:
        """Tell the outside that the caller speaks; over a reply this waits until the reply is cut."""
        utterance = utterance or self.utterance
        if utterance and not utterance.announced:
            utterance.announced = True
            self.emit(SpeechStarted(utterance.item_id, round(samples_to_ms(utterance.heard_from))))
            if words := utterance.agreement.committed:
                self.emit(WordsHeard(utterance.item_id, f"{' '.join(words)} "))

    def _partial(self, item_id: str, hypothesis: Hypothesis) -> None:
        utterance = self.utterance
        if utterance is None or utterance.item_id != item_id:
            return
        stable, others = utterance.guess(hypothesis.text, hypothesis.until)
        if stable and utterance.announced:
            self.emit(WordsHeard(utterance.item_id, f"{stable} "))
        interrupts = self.dialogue.settings.agent.is_interrupted(" ".join(utterance.agreement.committed))
        if others or interrupts:
            self._feed(Partial(interrupts))

    def listen(self) -> Utterance:
        """The utterance that is being heard, or a silent one if there is none: what a client's commit ends."""
        if self.utterance is None:
            self._open_at(max(self.committed_to, self.ear.now - REMEMBERED))
        assert self.utterance is not None
        return self.utterance

    def hand_over(self) -> Utterance:
        """The client ends the turn here: its utterance, whose last words are still to be asked for."""
        utterance = self.listen()
        self._discard()
        self._feed(Committed())
        self._leave(utterance)
        if self.over:
            utterance.cancel()  # Nobody will ask for its words.
        return utterance

    def clear(self) -> None:
        """Forget the sound since the last commit."""
        self._feed(Cleared())
        self.committed_to = self.ear.now

    def _settle(self) -> None:
        assert self.utterance is not None
        self.utterance.settling = self.spawn(self._ask_words(self.utterance))

    async def _ask_words(self, utterance: Utterance) -> None:
        utterance.record.forget("settle", "words")
        utterance.record.stamp("settle", self._clock())
        heard, failed = Evidence(""), False
        try:
            heard = await utterance.settle(self.dialogue.turn_ends)
        except EngineError as error:
            utterance.end = self.ear.last_voiced
            heard, failed = Evidence(utterance.stands_in(error)), True
            log.error("%s: the words are %r: %s", self.id, heard.text, error)
        if self.utterance is not utterance or utterance.settling is not asyncio.current_task():
            return  # The voice came back, or the client was faster.
        utterance.record.stamp("words", self._clock())
        utterance.text = heard.text
        verdict = self._judge(replace(heard, text=utterance.words, asked=self.dialogue.asked))
        utterance.record.confident, utterance.record.endpoint = verdict.confident, verdict.reason
        interrupts = self.dialogue.settings.agent.is_interrupted(utterance.text)
        self._feed(Words(utterance.words, verdict.required_ms, interrupts, failed))

    def _judge(self, evidence: Evidence) -> Verdict:
        detection = self.dialogue.settings.turn_detection
        if isinstance(detection, ServerVad):
            return Verdict(detection.silence_ms, confident=False, reason="as the client set it")
        return self._endpointer.judge(evidence)

    def _guess(self) -> None:
        utterance = self.utterance
        assert utterance is not None
        guess = f"{utterance.before} {utterance.partial}".strip()
        if utterance.partial and self._endpointer.may_end(guess, self.dialogue.asked):
            self.dialogue.prepare(guess, utterance.partial, utterance.record)
        else:
            self.dialogue.discard()

    def _prepare(self) -> None:
        assert self.utterance
        self.dialogue.prepare(self.utterance.words, self.utterance.text, self.utterance.record)

    def _discard(self) -> None:
        if self.utterance and self.utterance.settling:
            self.utterance.settling.cancel()
        self.dialogue.discard()

    def _answer(self) -> None:
        assert self._last
        self.dialogue.answer(self._last.words, self._last.record)

    def _owe(self) -> None:
        if self._last and self._last.words:
            self.dialogue.owe("turn")

    def close(self) -> Utterance:
        """End the utterance; it now is the last turn. The next voice is a new one."""
        utterance = self.utterance
        assert utterance is not None
        utterance.cancel()
        self._leave(utterance)
        return utterance

    def _leave(self, utterance: Utterance) -> None:
        self.utterance, self._last = None, utterance
        utterance.end = self.ear.last_voiced
        self.committed_to = self.ear.now
        by_request = not isinstance(self.dialogue.settings.turn_detection, SemanticVad)
        utterance.timed(self.ear.arrived(utterance.end), by_request=by_request)
        self.ear.forget()

    def join(self, utterance: Utterance) -> None:
        """Make the closed utterance the caller's turn in the conversation."""
        self._announce(utterance)
        self.emit(SpeechStopped(utterance.item_id, round(samples_to_ms(utterance.end))))
        audio_ms = max(0, round(samples_to_ms(utterance.end - utterance.start)))
        self.dialogue.add(Item(utterance.item_id, text=utterance.text, audio_ms=audio_ms), spoken=True)

    def _drop(self, last: Utterance | None = None) -> None:
        """It was a cough, or nothing: no turn comes of it. `last`: the turn that may yet be reopened."""
        self._discard()
        utterance = self.close()
        self._last = last
        if utterance.announced:
            self.emit(SpeechStopped(utterance.item_id, round(samples_to_ms(self.ear.last_voiced))))
        self.catch_up()

    def _cut(self) -> None:
        self._announce()
        self.dialogue.stop("turn_detected")

    def _reopen(self) -> None:
        if self.utterance and self._last:
            self.utterance.before, self.utterance.record.continues = self._last.words, True
        self._announce()
        self.dialogue.repair()

    # Between turns.

    def configure(self, settings: CallSettings) -> None:
        """Effective from the next *prepare*: a pending speculation was made for the old settings."""
        before, self.dialogue.settings = self.dialogue.settings, settings
        self.dialogue.discard()
        if self._tasks and (before.voice, before.speed) != (settings.voice, settings.speed):
            self.dialogue.rehearse()
        detection, vad = settings.turn_detection, self._config.vad
        self.ear.configure(vad.as_asked(detection) if isinstance(detection, ServerVad) else vad)
        eagerness = detection.eagerness if isinstance(detection, SemanticVad) else "auto"
        self._endpointer = Endpointer(self._config.endpoint, eagerness)

    def replying(self) -> None:
        """A reply began that no turn asked for."""
        self._feed(Replying())

    def wait(self, what: str) -> None:
        """Until `go_on(what)` the caller is heard and not answered, and silence does not matter."""
        self.dialogue.wait(what)

    def go_on(self, what: str) -> None:
        """No longer wait, and answer what has not been answered meanwhile."""
        self.dialogue.go_on(what)
        self.catch_up()

    def catch_up(self) -> None:
        """Begin the reply that is owed, if there is one and nothing is in its way."""
        # A voice that is heard now ends as a turn, whose reply answers everything, or as a cough.
        if not (self.utterance or self.over) and self.dialogue.catch_up():
            self.replying()

    def _reply_ended(self) -> None:
        self.no_input.wait(self.ear.now)
        self._feed(ReplyEnded())
        if not self.utterance:
            self.ear.forget()
        self.catch_up()
        # What came of a tool during the goodbye is told first.
        if self.no_input.goodbye and not (self.dialogue.reply or self.dialogue.works):
            self.spawn(self.hang_up("no_input"))

    async def hang_up(self, reason: str) -> None:
        """End the call from our side."""
        self._ending = reason
        await self.line.hang_up()

    async def _greet(self) -> None:
        await asyncio.sleep(self.line.setup_ms / 1000)
        dialogue, greeting = self.dialogue, self.dialogue.settings.agent.greeting
        if greeting and not (dialogue.reply or dialogue.waiting or dialogue.studio.history.items or self.utterance):
            dialogue.say(greeting)
            self.greeting = dialogue.reply
            self.replying()

    def _watch_quiet(self) -> None:
        if self.utterance:
            self.no_input.wait(self.ear.now)
        elif self.dialogue.fill_silence(self.no_input, self.ear.now):
            self.replying()

    async def _mind_gaps(self) -> None:
        """Silence is counted in the caller's sound, and a client that stops sending (a button let go, a muted
        microphone) sends none either: tell the machine that nothing comes."""
        while True:
            await asyncio.sleep(GAP_S / 4)
            gap = self._clock() - self._last_block_at
            if gap >= GAP_S and (fact := self.ear.nothing(gap * 1000)):
                self._feed(fact)

    def spawn(self, job: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run `job` as a task of this call: it ends with the call, and its failure ends the call."""
        if self.over:
            job.close()
            return asyncio.ensure_future(asyncio.sleep(0))
        try:
            with owned_by(self.id):
                task = self._group.create_task(job)
        except RuntimeError:
            job.close()
            raise
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _failing(error: Exception) -> None:
    """A group of tasks fails by a task that fails."""
    try:
        raise error
    finally:
        del error  # It knows this frame: in a circle, the call would stay until the collector came.


ACTIONS: dict[Action, Callable[[Call], None]] = {
    Action.OPEN: lambda call: call._open_at(call.ear.started),
    Action.ANNOUNCE: Call._announce,
    Action.SETTLE: Call._settle,
    Action.GUESS: Call._guess,
    Action.PREPARE: Call._prepare,
    Action.DISCARD: Call._discard,
    Action.COMMIT: lambda call: call.join(call.close()),
    Action.ANSWER: Call._answer,
    Action.OWE: Call._owe,
    Action.DROP: Call._drop,
    Action.DROP_OVER: lambda call: call._drop(call._last),
    Action.DUCK: lambda call: call._playout.duck(),
    Action.HOLD: lambda call: call._playout.hold(),
    Action.RESUME: lambda call: call._playout.resume(),
    Action.CUT: Call._cut,
    Action.REOPEN: Call._reopen,
}
