"""The caller is put through to a person, by the model or by a program; one attempt at a time.

The model's begins when the reply in which it was asked for has been heard to its end, so nothing that the caller says
can cut it short. Until its outcome is known the caller is heard, and not answered.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from voicepipe.base.errors import TransferFailed
from voicepipe.call.call_tasks import CallTasks
from voicepipe.call.turns import CallEnder, Turns
from voicepipe.conversation.own_tools import target
from voicepipe.conversation.prompt import ToolCall
from voicepipe.line import NO_TRANSFER, Line

log = logging.getLogger(__name__)
WHAT = "transfer"
"""The reason that the call waits for (`PendingReplies.wait`)."""


class Transfer:
    """Transfers the caller of one call to a person, one attempt at a time."""

    def __init__(self, call_id: str, line: Line, turns: Turns, tasks: CallTasks, call: CallEnder) -> None:
        self._call_id, self._line, self._tasks, self._call = call_id, line, tasks, call
        self._speaking, self._pending_replies = turns.speaking, turns.pending_replies
        self._under_way = False

    def by_model(self, asked: ToolCall) -> None:
        """Begin the transfer that the model asked for. If it fails, the model reads why as the tool's result, and goes
        on."""
        failed = partial(self._pending_replies.failed, asked)
        try:
            self._begin(target(self._speaking.settings.agent, asked.arguments), failed)
        except TransferFailed as error:
            failed(str(error))

    def by_program(self, to: str) -> None:
        """Begin the transfer that the client asked for. If it fails, the agent says so. Raises TransferFailed: it
        cannot be begun."""
        self._begin(to, self._tell_caller)

    def _begin(self, to: str, failed: Callable[[str], None]) -> None:
        if not self._line.transfers:
            raise TransferFailed(NO_TRANSFER)
        if self._under_way:
            raise TransferFailed("this caller is being transferred already")
        self._under_way = True
        self._pending_replies.wait(WHAT)
        self._tasks.spawn(self._run(to, failed))

    async def _run(self, to: str, failed: Callable[[str], None]) -> None:
        if why := await self._attempt(to):
            log.warning("%s: not transferred to %s: %s", self._call_id, to, why)
            self._under_way = False
            failed(why)
            self._pending_replies.go_on(WHAT)
        else:
            log.info("%s: transferred to %s", self._call_id, to)
            await self._call.hang_up("transferred", to)

    async def _attempt(self, to: str) -> str:
        """Attempt the transfer. Returns why it failed, or "" once somebody has taken the call."""
        patience_s = self._speaking.settings.agent.transfer_ms / 1000
        try:
            async with asyncio.timeout(patience_s):
                await self._line.transfer(to)
        except TransferFailed as error:
            return str(error)
        except TimeoutError:
            return f"nobody answered within {patience_s:g} s"
        return ""

    def _tell_caller(self, why: str) -> None:
        if (said := self._speaking.settings.agent.transfer_failed) and not self._speaking.making:
            self._speaking.say(said)
