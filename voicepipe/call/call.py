"""ONE call: the main path. The caller's sound goes to `hearing.py`, its facts to the turn machine, and what that
decides to `speaking.py`; this file joins them.

Read `line.py`, `turn/machine.py`, this file, `hearing.py`, `speaking.py`, `reply.py` and `playout.py`, in this order.
All of it happens on one event loop, and `feed` is synchronous: what follows from one fact comes before the next.
"""

import asyncio
import weakref
from collections import deque
from collections.abc import Callable

from voicepipe.agent import CallSettings
from voicepipe.call.conversation import Conversation
from voicepipe.call.errands import BeginTool
from voicepipe.call.hang_up import when_heard
from voicepipe.call.hearing import Hearing
from voicepipe.call.jobs import Jobs
from voicepipe.call.owed import Owed
from voicepipe.call.playout import Playout
from voicepipe.call.quiet import Quiet
from voicepipe.call.reply import Reply
from voicepipe.call.speaking import Speaking
from voicepipe.call.speech import Speaker
from voicepipe.call.studio import Studio
from voicepipe.call.transfer import Transfer
from voicepipe.call.utterance import Utterance
from voicepipe.config import Config
from voicepipe.engines.base import Engines
from voicepipe.errors import cause
from voicepipe.line import Line
from voicepipe.shown import shown
from voicepipe.turn.events import CallEnded, CallEvent, Item
from voicepipe.turn.facts import Action, Cleared, Committed, Fact, ReplyEnded, Replying
from voicepipe.turn.known import May
from voicepipe.turn.machine import TurnMachine
from voicepipe.turn.prompt import ToolCall


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
        self.emit = emit
        self.jobs = Jobs(call_id)
        us: Call = weakref.proxy(self)
        """Who belongs to us knows us by this. In a circle, our sound would stay until the collector came."""
        self._playout = Playout(line, clock, config.turn.duck_db)
        speaker = Speaker(engines.tts, line.out_rate, settings.agent.language, engines.made_ahead)
        studio = Studio(
            call_id, engines, speaker, self._playout, begin_tool, config.ladder, clock, emit, lambda: us._tool_over()
        )
        self.ids, self._errands = studio.ids, studio.errands
        self.conversation = Conversation(studio)
        self.speaking = Speaking(studio, self.conversation, settings, self.jobs, us)
        self.hearing = Hearing(studio, config, settings, self.jobs, us, self.speaking.turn_ends)
        self.owed = Owed(studio, self.conversation, self.speaking)
        self.quiet = Quiet(self.speaking, self.owed, studio.errands)
        self.transfer = Transfer(call_id, line, self.speaking, self.owed, self.jobs, us)
        self._machine = TurnMachine(config.turn)
        self._facts: deque[Fact] = deque()
        """Those that are not dealt with yet: what an action brings about comes after all that its fact called for."""
        self._acting = False
        self.greeting: Reply | None = None
        """The greeting, which a client's own reply may replace."""
        self._ending = ""
        """Why we hang up."""

    async def run(self) -> None:
        """Answer, and go on until either side hangs up. CallEnded is the last event, whatever happens."""
        reason, detail = "error", ""
        try:
            async with self.jobs as jobs:
                for job in (self._playout.run(), self._greet(), self.hearing.mind_gaps()):
                    jobs.spawn(job)
                self.speaking.rehearse()
                await self.line.listen(self.hearing.hear)
                reason, jobs.over = self._ending or "caller", True
                self._errands.leave()  # A tool that is over now begins no reply: it would never end.
                self.speaking.stop("client_cancelled")
                self.speaking.discard()
                jobs.cancel()
        except* Exception as errors:
            detail = shown(cause(errors), f"call {self.id}")
        finally:
            self.jobs.over = True
            self.let_go()
            await self.line.hang_up()
            self.emit(CallEnded(reason, detail))

    def let_go(self) -> None:
        """It has run, or never will: cut the circles that are left. Safe to call twice."""
        self._errands.leave()
        self.hearing.let_go()

    # Facts in, actions out.

    def feed(self, fact: Fact) -> None:
        """Have the machine decide, and do it."""
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
        detection = self.speaking.settings.turn_detection
        interrupts = detection is None or detection.interrupt_response
        return May(answers=self.owed.answers, interrupts=interrupts, ends=detection is not None)

    def block_heard(self) -> None:
        """20 ms have passed for the caller."""
        if self.hearing.utterance:
            self.quiet.wait(self.hearing.now)
        else:
            self.quiet.passes(self.hearing.now)

    def _open(self) -> None:
        self.hearing.open()
        self.quiet.back(self.hearing.now)

    def _guess(self) -> None:
        utterance = self.hearing.utterance
        if utterance and (turn := self.hearing.guess()):
            self.speaking.prepare(turn, utterance.partial, utterance.record)
        else:
            self.speaking.discard()

    def _prepare(self) -> None:
        utterance = self.hearing.utterance
        assert utterance
        self.speaking.prepare(utterance.words, utterance.text, utterance.record)

    def _discard(self) -> None:
        self.hearing.stop_settling()
        self.speaking.discard()

    def _answer(self) -> None:
        last = self.hearing.last
        assert last
        self.speaking.answer(last.words, last.record)

    def _owe(self) -> None:
        if self.hearing.last and self.hearing.last.words:
            self.owed.turn()

    def _drop(self, last: Utterance | None = None) -> None:
        self._discard()
        self.hearing.drop(last)
        self.catch_up()

    def _cut(self) -> None:
        self.hearing.announce()
        self.speaking.stop("turn_detected")

    def _reopen(self) -> None:
        self.hearing.reopen()
        self.speaking.repair()

    # Turns that silence does not end.

    def hand_over(self) -> Utterance:
        """The client ends the turn here: its utterance, whose last words are still to be asked for."""
        utterance = self.hearing.listen()
        self.quiet.back(self.hearing.now)
        self._discard()
        self.feed(Committed())
        self.hearing.leave(utterance)
        if self.jobs.over:
            utterance.cancel()  # Nobody will ask for its words.
        return utterance

    def join(self, utterance: Utterance) -> None:
        """Make the closed utterance the caller's turn in the conversation."""
        self.hearing.announce(utterance)
        self.hearing.announce_end(utterance, utterance.end)
        self.speaking.add(Item(utterance.item_id, text=utterance.text, audio_ms=utterance.audio_ms), spoken=True)

    def clear(self) -> None:
        """Forget the sound since the last commit."""
        self.feed(Cleared())
        self.hearing.clear()

    # Between turns.

    def configure(self, settings: CallSettings) -> None:
        """Effective from the next *prepare*: a pending speculation was made for the old settings. Hearing and speaking
        have the same."""
        before, self.speaking.settings = self.speaking.settings, settings
        self.speaking.discard()
        if self.jobs.running and (before.voice, before.speed) != (settings.voice, settings.speed):
            self.speaking.rehearse()
        self.hearing.configure(settings)

    def wait(self, what: str) -> None:
        """Until `go_on(what)` the caller is heard and not answered, and silence does not matter."""
        self.owed.wait(what)

    def go_on(self, what: str) -> None:
        """No longer wait, and answer what has not been answered meanwhile."""
        self.owed.go_on(what)
        self.catch_up()

    def catch_up(self) -> None:
        """Begin the reply that is owed, if there is one and nothing is in its way."""
        # A voice that is heard now ends as a turn, whose reply answers everything, or as a cough.
        if not (self.hearing.utterance or self.jobs.over):
            self.owed.catch_up()

    def reply_began(self) -> None:
        self.feed(Replying())

    def reply_ended(self) -> None:
        self.quiet.wait(self.hearing.now)
        self.feed(ReplyEnded())
        self.hearing.forget()
        self.catch_up()
        # What came of a tool during the goodbye is told first.
        if self.quiet.goodbye and not (self.speaking.reply or self.owed.works):
            self.jobs.spawn(self.hang_up("no_input"))

    def _tool_over(self) -> None:
        """The conversation has a result: a reply that is prepared does not know it, and one may be owed for it."""
        self.speaking.discard()
        self.catch_up()

    def takes_leave(self, transfer: ToolCall | None) -> None:
        if transfer:
            self.transfer.by_model(transfer)
        else:
            self.jobs.spawn(when_heard(self.hearing, self.speaking, self.owed, self.conversation, self.hang_up))

    async def hang_up(self, reason: str) -> None:
        """End the call from our side."""
        self._ending = reason
        await self.line.hang_up()

    async def _greet(self) -> None:
        await asyncio.sleep(self.line.setup_ms / 1000)
        speaking, greeting = self.speaking, self.speaking.settings.agent.greeting
        began = speaking.reply or self.owed.waiting or self.hearing.utterance or not self.conversation.is_empty()
        if greeting and not began:
            speaking.say(greeting)
            self.greeting = speaking.reply


ACTIONS: dict[Action, Callable[[Call], None]] = {
    Action.OPEN: Call._open,
    Action.ANNOUNCE: lambda call: call.hearing.announce(),
    Action.SETTLE: lambda call: call.hearing.settle(),
    Action.GUESS: Call._guess,
    Action.PREPARE: Call._prepare,
    Action.DISCARD: Call._discard,
    Action.COMMIT: lambda call: call.join(call.hearing.close()),
    Action.ANSWER: Call._answer,
    Action.OWE: Call._owe,
    Action.DROP: Call._drop,
    Action.DROP_OVER: lambda call: call._drop(call.hearing.last),
    Action.DUCK: lambda call: call.speaking.duck(),
    Action.HOLD: lambda call: call.speaking.hold(),
    Action.RESUME: lambda call: call.speaking.resume(),
    Action.CUT: Call._cut,
    Action.REOPEN: Call._reopen,
}
