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
from voicepipe.base.error_texts import shown
from voicepipe.base.errors import cause
from voicepipe.call.call_context import CallContext
from voicepipe.call.call_tasks import CallTasks
from voicepipe.call.playout import Playout
from voicepipe.call.reply import Reply
from voicepipe.call.speech import PhraseSpeaker
from voicepipe.call.tool_runs import BeginTool
from voicepipe.call.transfer import Transfer
from voicepipe.call.tts_cache import CallTtsCache
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
    """One phone call, from the answer until either side hangs up.

    `emit` gets every CallEvent, on the event loop, in order. `control.py` has what a client may ask of a call.
    """

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
        self.tasks = CallTasks(call_id)
        us: Call = weakref.proxy(self)
        """Our parts know us by this weak reference: a cycle would keep the call's sound until the collector ran."""
        self._playout = Playout(line, clock, config.turn.duck_db)
        self.voice_for = partial(engines.tts.voice_for, language=settings.agent.language)
        """As `base.Tts.voice_for`, for this caller's language."""
        speaker = PhraseSpeaker(engines.tts, line.out_rate, settings.agent.language, engines.made_ahead)
        context = CallContext(call_id, engines, speaker, self._playout, begin_tool, config.ladder, clock, emit, us)
        self.ids, self._tool_runs = context.ids, context.tool_runs
        self.turns = turns = Turns(context, config, settings, self.tasks, us)
        self.hearing, self.speaking, self.pending_replies, self.idle_timer = (
            turns.hearing,
            turns.speaking,
            turns.pending_replies,
            turns.idle_timer,
        )
        self.conversation = turns.conversation
        self.transfer = Transfer(call_id, line, self.speaking, self.pending_replies, self.tasks, us)
        self._tts_cache = CallTtsCache(speaker, self.tasks)
        self.greeting: Reply | None = None
        """The greeting, which a client's own reply may replace."""
        self._ending, self._ending_detail = "", ""
        """Why we hang up, as `CallEnded` tells it."""

    async def run(self) -> None:
        """Answer, and go on until either side hangs up. CallEnded is the last event, whatever happens."""
        reason, detail = "error", ""
        try:
            async with self.tasks as tasks:
                for job in (self._playout.run(), self._greet(), self.hearing.gaps.mind()):
                    tasks.spawn(job)
                self._tts_cache.begin(self.speaking.settings)
                await self.line.listen(self.hearing)
                reason, detail, tasks.over = self._ending or "caller", self._ending_detail, True
                self._tool_runs.leave()  # A tool that is over now begins no reply: it would never end.
                self.speaking.stop("client_cancelled")
                self.speaking.discard()
                tasks.cancel()
        except* Exception as errors:
            detail = shown(cause(errors), f"call {self.id}")
        finally:
            self.tasks.over = True
            self.let_go()
            await self.line.hang_up()
            self.emit(CallEnded(reason, detail))

    async def _greet(self) -> None:
        await asyncio.sleep(self.line.setup_ms / 1000)
        speaking, greeting = self.speaking, self.speaking.settings.agent.greeting
        began = (
            speaking.reply or self.pending_replies.waiting or self.hearing.utterance or not self.conversation.is_empty()
        )
        if greeting and not began:
            speaking.say(greeting)
            self.greeting = speaking.reply

    def configure(self, settings: CallSettings) -> None:
        """Use these settings from the next *prepare* on: a pending speculation was made for the old ones. Hearing and
        speaking get the same settings."""
        before, self.speaking.settings = self.speaking.settings, settings
        self.speaking.discard()
        if self.tasks.running and (before.voice, before.speed) != (settings.voice, settings.speed):
            self._tts_cache.begin(settings)
        self.hearing.configure(settings)

    def takes_leave(self, farewell: ToolCall) -> None:
        """As `ReplyListener.takes_leave`."""
        if farewell.name == TRANSFER_TOOL:
            self.transfer.by_model(farewell)
        else:
            self.tasks.spawn(self._hang_up_when_heard())

    async def _hang_up_when_heard(self) -> None:
        """Hang up once the caller has heard the reply in which the model asked for it.

        A voice over the last words may become a turn, which is answered first. The result of a tool that still runs
        comes first, too.
        """
        last = self.conversation.last()
        while self.hearing.utterance or self.pending_replies.works:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        if not (self.speaking.reply or self.pending_replies.waiting) and self.conversation.last() is last:
            await self.hang_up("agent")

    def tool_over(self) -> None:
        """As `ToolRunEvents.tool_over`."""
        self.pending_replies.tool_over()

    async def hang_up(self, reason: str, detail: str = "") -> None:
        """End the call from our side; both as `CallEnded` tells them."""
        self._ending, self._ending_detail = reason, detail
        await self.line.hang_up()

    def let_go(self) -> None:
        """The call has run, or never will: cut the reference cycles that are left. Safe to call twice."""
        self._tool_runs.leave()
        self.hearing.let_go()
