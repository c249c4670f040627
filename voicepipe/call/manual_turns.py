"""Turns of the caller's that silence does not end: a client's commit does, or keys that are pressed."""

import asyncio
import logging

from voicepipe.base.errors import EngineError
from voicepipe.call.call_tasks import CallTasks
from voicepipe.call.turns import Turns
from voicepipe.call.utterance import Utterance
from voicepipe.conversation.events import Item
from voicepipe.conversation.history import Ids
from voicepipe.turn.facts import Cleared, Committed
from voicepipe.turn.keypad import Keypad

log = logging.getLogger(__name__)
KEYS = "keys"
"""The reason that the call waits for (`PendingReplies.wait`)."""


class ManualTurns:
    """Ends the turns of one call when a client commits them, not by silence."""

    def __init__(self, call_id: str, turns: Turns, tasks: CallTasks) -> None:
        self.pending: asyncio.Future[None] | None = None
        """The last commit, while the recogniser is still asked for the words."""
        self._call_id, self._turns, self._tasks = call_id, turns, tasks
        self._hearing = turns.hearing

    def end_turn(self) -> None:
        """End the caller's turn here. It joins the conversation as soon as its words are there."""
        utterance = self._hand_over()
        self.pending = self._tasks.spawn(self._join(utterance, self.pending))
        # Where the call is over, or ends now, that never runs, and nobody else would end the recogniser's stream.
        self.pending.add_done_callback(lambda done: utterance.cancel())

    def give_way(self) -> None:
        """Something else takes the turn. What is being said joins the conversation if it has words. Where the client
        alone ends turns, it goes on."""
        utterance = self._hearing.utterance
        if utterance and self._turns.speaking.settings.turn_detection:
            if utterance.partial:
                self.end_turn()
            else:
                self.clear()

    def clear(self) -> None:
        """Forget the sound since the last commit."""
        self._turns.feed(Cleared())
        self._hearing.clear()

    def _hand_over(self) -> Utterance:
        """End the utterance here and return it; its last words are still to be asked for."""
        utterance = self._hearing.listen()
        self._turns.no_input_prompts.back(self._hearing.now)
        self._turns.discard()
        self._turns.feed(Committed())
        self._hearing.leave(utterance)
        return utterance

    async def _join(self, utterance: Utterance, before: "asyncio.Future[None] | None") -> None:
        try:
            await utterance.finish()
        except EngineError as error:
            log.error("%s: nothing recognised: %s", self._call_id, error)
        if before:
            await asyncio.wait([before])  # Turns join the conversation in the order in which they were spoken.
        self._turns.join(utterance)
        if self.pending is asyncio.current_task():
            self.pending = None


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
