"""What a key of the caller's telephone does: the first one stops the reply, and keys become a turn
(`turn/keypad.py`)."""

import asyncio

from voicepipe.call.call_tasks import CallTasks
from voicepipe.call.manual_turns import ManualTurns
from voicepipe.call.turns import Turns
from voicepipe.conversation.events import Item
from voicepipe.conversation.history import Ids
from voicepipe.turn.keypad import Keypad

KEYS = "keys"
"""The reason that the call waits for (`PendingReplies.wait`)."""


class KeypadTurns:
    """Turns of one call that the caller enters with the keys of their telephone. The first key interrupts the agent."""

    def __init__(self, turns: Turns, manual_turns: ManualTurns, tasks: CallTasks, ids: Ids) -> None:
        self._turns, self._manual_turns = turns, manual_turns
        self._speaking, self._pending_replies = turns.speaking, turns.pending_replies
        self._tasks, self._ids = tasks, ids
        self._keypad = Keypad()
        self._ends_at = 0.0
        """The loop's second at which the turn is over if no further key is pressed."""
        self._minded = False
        """A task waits for that second."""

    def press(self, key: str) -> None:
        agent = self._speaking.settings.agent
        self._turns.no_input_prompts.back(self._turns.hearing.now)
        if not self._keypad.press(key, agent.keys):
            return
        self._pending_replies.wait(KEYS)
        self._speaking.interrupt()
        if self._keypad.complete(agent.keys) or not agent.key_pause_ms:
            return self._end()
        self._ends_at = asyncio.get_running_loop().time() + agent.key_pause_ms / 1000
        if not self._minded:
            self._minded = True
            self._tasks.spawn(self._mind_pause())

    async def _mind_pause(self) -> None:
        """End the turn after the pause. One task serves all keys, however many are pressed. It does not count the
        caller's sound, since telephones may send none while a key is held."""
        loop = asyncio.get_running_loop()
        while (left_s := self._ends_at - loop.time()) > 0:  # noqa: ASYNC110 - each key moves it
            await asyncio.sleep(left_s)
        self._minded = False
        if self._keypad.keys:
            self._end()

    def _end(self) -> None:
        text = self._keypad.take(self._speaking.settings.agent.keys)
        self._manual_turns.give_way()
        if pending := self._manual_turns.pending:
            self._tasks.spawn(self._join_after(pending, text))
        else:
            self._join(text)

    async def _join_after(self, pending: "asyncio.Future[None]", text: str) -> None:
        await asyncio.wait([pending])
        self._join(text)

    def _join(self, text: str) -> None:
        self._turns.add(Item(self._ids.new("item"), text=text))
        self._speaking.interrupt()  # A client may have asked for a reply meanwhile.
        self._pending_replies.turn()
        if not self._keypad.keys:
            self._pending_replies.go_on(KEYS)
