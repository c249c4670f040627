"""Keys that the model presses for the other side's menu, once the reply in which it asked for them has been heard.

Until all are sent the other side is heard, and not answered; its voice does not stop them, since most menus talk on
until the first key. The model reads what was sent, and may go on without a word.
"""

import asyncio
import logging

from voicepipe.base.errors import KeysFailed
from voicepipe.call.call_context import CallContext
from voicepipe.call.call_tasks import CallTasks
from voicepipe.call.turns import Turns
from voicepipe.conversation.own_tools import KEYS_SENT, keys_to_send, partly_sent
from voicepipe.conversation.prompt import ToolCall

log = logging.getLogger(__name__)
WHAT = "send_keys"
"""The reason that the call waits for (`PendingReplies.wait`)."""


class KeySending:
    """Sends the keys that the model of one call has asked for, to one menu at a time."""

    def __init__(self, context: CallContext, turns: Turns, tasks: CallTasks) -> None:
        self._context, self._line, self._tasks = context, context.playout.line, tasks
        self._pending_replies = turns.pending_replies
        self._sending: asyncio.Future[None] | None = None

    def begin(self, asked: ToolCall) -> None:
        """Begin to send the keys of this call, which `CallContext.wrong` has let pass."""
        self._pending_replies.wait(WHAT)
        self._tasks.spawn(self._run(asked))

    def stop(self) -> bool:
        """A program wants silence: send no more. Returns whether there was more to send."""
        return self._sending is not None and self._sending.cancel()

    async def _run(self, asked: ToolCall) -> None:
        item, keys, began = self._context.begun(asked), keys_to_send(asked.arguments), self._context.clock()
        result = await self._send(keys)
        took = round(1000 * (self._context.clock() - began), 1)
        failed = result != KEYS_SENT
        log.info("%s: %d keys and pauses: %s", self._context.call_id, len(keys), "not all sent" if failed else "sent")
        self._context.own_tool_over(asked, result, item=item, failed=failed, took=took)
        self._pending_replies.keys_over()
        self._pending_replies.go_on(WHAT)

    async def _send(self, keys: str) -> str:
        """Send keys. Returns the result, as the model reads it."""
        sent: list[str] = []
        try:
            self._sending = sending = self._line.send_keys(keys, sent.append)
        except KeysFailed as error:
            return partly_sent(keys, "", str(error))
        try:
            await asyncio.wait([sending])
        finally:
            self._sending = None
            sending.cancel()
        if "".join(sent) == keys:
            return KEYS_SENT
        try:
            sending.result()
        except KeysFailed as error:
            return partly_sent(keys, "".join(sent), str(error))
        except asyncio.CancelledError:
            return partly_sent(keys, "".join(sent), "interrupted")
        return KEYS_SENT
