"""What may have to be said at once is made ahead, with the call's own voice."""

import asyncio
import logging

from voicepipe.agent import CallSettings
from voicepipe.call.jobs import Jobs
from voicepipe.call.speech import Speaker
from voicepipe.errors import EngineError

log = logging.getLogger(__name__)
STANDS_S = 0.3
"""As long as a greeting waits for how a client wants its session: first words come later."""


class Rehearsal:
    """One call's."""

    def __init__(self, speaker: Speaker, jobs: Jobs) -> None:
        self._speaker = speaker
        self._jobs = jobs
        self._task: asyncio.Future[None] | None = None

    def begin(self, settings: CallSettings) -> None:
        """Once these have stood for a moment: what is made for settings that are replaced is made for nothing."""
        if self._task:
            self._task.cancel()
        self._task = self._jobs.spawn(self._make(settings))

    async def _make(self, settings: CallSettings) -> None:
        await asyncio.sleep(STANDS_S)
        for text in (f"{settings.agent.acknowledgement} ", settings.agent.fallback):
            try:
                await self._speaker.keep(text, voice=settings.voice, speed=settings.speed)
            except EngineError as error:
                log.warning("cannot say %r ahead of time: %s", text, str(error))
