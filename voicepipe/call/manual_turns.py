"""Turns of the caller's that a client's commit ends, not silence."""

import asyncio
import logging

from voicepipe.base.errors import EngineError
from voicepipe.call.call_tasks import CallTasks
from voicepipe.call.turns import Turns
from voicepipe.call.utterance import Utterance
from voicepipe.turn.facts import Cleared, Committed

log = logging.getLogger(__name__)


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
        utterance = self._hearing.utterance_to_commit()
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
