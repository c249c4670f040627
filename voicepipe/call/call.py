"""ONE call from the answer to its end: here its parts are made, run, configured and let go. `turns.py` has what happens
in between.

To follow a turn, read `line.py`, `turn/machine.py`, `turns.py`, `hearing.py`, `speaking.py`, `reply.py` and
`playout.py`, in this order.
"""

import asyncio
import weakref
from collections.abc import Callable
from functools import partial

from voicepipe.agent import CallSettings
from voicepipe.base.errors import cause
from voicepipe.base.shown import shown
from voicepipe.call.errands import BeginTool
from voicepipe.call.jobs import Jobs
from voicepipe.call.playout import Playout
from voicepipe.call.rehearsed import Rehearsal
from voicepipe.call.reply import Reply
from voicepipe.call.speech import Speaker
from voicepipe.call.studio import Studio
from voicepipe.call.transfer import Transfer
from voicepipe.call.turns import Turns
from voicepipe.config import Config
from voicepipe.conversation.events import CallEnded, CallEvent
from voicepipe.conversation.prompt import ToolCall
from voicepipe.conversation.transfer import TRANSFER_TOOL
from voicepipe.engines.base import Engines
from voicepipe.line import Line

LOOK_S = 0.1
"""Between looks at whether the caller has something more to say, before the model hangs up."""


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
        self.voice_for = partial(engines.tts.voice_for, language=settings.agent.language)
        """As `base.Tts`, to this call's caller."""
        speaker = Speaker(engines.tts, line.out_rate, settings.agent.language, engines.made_ahead)
        studio = Studio(call_id, engines, speaker, self._playout, begin_tool, config.ladder, clock, emit, us)
        self.ids, self._errands = studio.ids, studio.errands
        self.turns = turns = Turns(studio, config, settings, self.jobs, us)
        self.hearing, self.speaking, self.owed, self.quiet = turns.hearing, turns.speaking, turns.owed, turns.quiet
        self.conversation = turns.conversation
        self.transfer = Transfer(call_id, line, self.speaking, self.owed, self.jobs, us)
        self._rehearsal = Rehearsal(speaker, self.jobs)
        self.greeting: Reply | None = None
        """The greeting, which a client's own reply may replace."""
        self._ending, self._ending_detail = "", ""
        """Why we hang up, as `CallEnded` tells it."""

    async def run(self) -> None:
        """Answer, and go on until either side hangs up. CallEnded is the last event, whatever happens."""
        reason, detail = "error", ""
        try:
            async with self.jobs as jobs:
                for job in (self._playout.run(), self._greet(), self.hearing.gaps.mind()):
                    jobs.spawn(job)
                self._rehearsal.begin(self.speaking.settings)
                await self.line.listen(self.hearing)
                reason, detail, jobs.over = self._ending or "caller", self._ending_detail, True
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

    async def _greet(self) -> None:
        await asyncio.sleep(self.line.setup_ms / 1000)
        speaking, greeting = self.speaking, self.speaking.settings.agent.greeting
        began = speaking.reply or self.owed.waiting or self.hearing.utterance or not self.conversation.is_empty()
        if greeting and not began:
            speaking.say(greeting)
            self.greeting = speaking.reply

    def configure(self, settings: CallSettings) -> None:
        """Effective from the next *prepare*: a pending speculation was made for the old settings. Hearing and speaking
        have the same."""
        before, self.speaking.settings = self.speaking.settings, settings
        self.speaking.discard()
        if self.jobs.running and (before.voice, before.speed) != (settings.voice, settings.speed):
            self._rehearsal.begin(settings)
        self.hearing.configure(settings)

    def takes_leave(self, farewell: ToolCall) -> None:
        """As `ReplyEvents.takes_leave`."""
        if farewell.name == TRANSFER_TOOL:
            self.transfer.by_model(farewell)
        else:
            self.jobs.spawn(self._hang_up_when_heard())

    async def _hang_up_when_heard(self) -> None:
        """The reply in which the model asked for that has been heard to its end. A voice over the last words becomes a
        turn, which is answered, or it was nothing; what comes of a tool that runs is told."""
        last = self.conversation.last()
        while self.hearing.utterance or self.owed.works:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        if not (self.speaking.reply or self.owed.waiting) and self.conversation.last() is last:
            await self.hang_up("agent")

    def tool_over(self) -> None:
        """As `ErrandEvents.tool_over`."""
        self.owed.tool_over()

    async def hang_up(self, reason: str, detail: str = "") -> None:
        """End the call from our side; both as `CallEnded` tells them."""
        self._ending, self._ending_detail = reason, detail
        await self.line.hang_up()

    def let_go(self) -> None:
        """It has run, or never will: cut the circles that are left. Safe to call twice."""
        self._errands.leave()
        self.hearing.let_go()
