"""Turns of the caller's that silence does not end: a client's commit does, or keys that are pressed."""

import asyncio
import logging

from voicepipe.call.call import Call
from voicepipe.call.utterance import Utterance
from voicepipe.errors import EngineError
from voicepipe.turn.facts import Cleared, Committed

log = logging.getLogger(__name__)


class Commits:
    """One call's."""

    def __init__(self, call: Call) -> None:
        self.pending: asyncio.Future[None] | None = None
        """The last one, while the recogniser is still asked for its words."""
        self._call_id, self._jobs = call.id, call.jobs
        self._turns, self._hearing, self._speaking, self._quiet = call.turns, call.hearing, call.speaking, call.quiet

    def end_turn(self) -> None:
        """What is being heard is the caller's turn, and joins the conversation as soon as its words are there."""
        utterance = self._hand_over()
        self.pending = self._jobs.spawn(self._join(utterance, self.pending))
        # Where the call is over, or ends now, that never runs, and nobody else would end the recogniser's stream.
        self.pending.add_done_callback(lambda done: utterance.cancel())

    def give_way(self) -> None:
        """Something else takes the turn: what is being said joins the conversation if it has words. Where the client
        alone ends turns it goes on."""
        utterance = self._hearing.utterance
        if utterance and self._speaking.settings.turn_detection:
            if utterance.partial:
                self.end_turn()
            else:
                self.clear()

    def clear(self) -> None:
        """Forget the sound since the last commit."""
        self._turns.feed(Cleared())
        self._hearing.clear()

    def _hand_over(self) -> Utterance:
        """The utterance that ends here; its last words are still to be asked for."""
        utterance = self._hearing.listen()
        self._quiet.back(self._hearing.now)
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
