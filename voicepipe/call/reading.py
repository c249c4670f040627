"""Who else tells whether the caller's turn ends is asked beside the recogniser: a turn model, the language model."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from voicepipe.agent import CallSettings, SemanticVad
from voicepipe.call.jobs import Spawn
from voicepipe.call.studio import Studio
from voicepipe.errors import EngineError
from voicepipe.turn.as_said import as_said

log = logging.getLogger(__name__)
Reads = Callable[[str], Coroutine[Any, Any, float | None]]
"""Probability that the caller's turn ends after these words, if anybody can tell."""


async def opinion(asked: Awaitable[float | None]) -> float | None:
    """What somebody says beside the recogniser. The call can do without it: whatever fails, there is none."""
    try:
        return await asked
    except Exception as error:  # Its words alone: its traceback would keep the call where a log keeps records.
        log.error("nobody tells whether the turn is over: %s", str(error))
        return None


class Reading:
    """Asks whether the turn ends after the words so far; the answer about other words counts for nothing."""

    def __init__(self, reads: Reads, spawn: Spawn) -> None:
        self._reads = reads
        self._spawn = spawn
        self._words = ""
        self._task: asyncio.Future[float | None] | None = None
        self._over = False

    def about(self, words: str) -> None:
        """Ask about these, and no longer about those before."""
        if not self._over:
            if self._task:
                self._task.cancel()
            self._words, self._task = as_said(words), self._spawn(opinion(self._reads(words)))

    def of(self, words: str) -> "asyncio.Future[float | None] | None":
        """The answer about these, if that was asked; nothing is asked from here on."""
        self._over = True
        return self._task if as_said(words) == self._words else None

    def cancel(self) -> None:
        self._over = True
        if self._task:
            self._task.cancel()


async def turn_ends(studio: Studio, settings: CallSettings, words: str) -> float | None:
    """Probability that it ends after `words`, which are not part of the conversation yet. None: the model is not asked,
    since it has no say or there is none to ask, or it failed."""
    reader = studio.engines.reader
    if not reader or not words or not isinstance(settings.turn_detection, SemanticVad):
        return None
    try:
        return await reader.ends(studio.order(settings, words).prompt)
    except EngineError as error:
        # Its words alone: its traceback would keep the call where a log keeps records.
        log.error("the language model does not tell where turns end: %s", str(error))
        return None
