"""Answers of an engine that fail in a row: when they are its end. All engines share this rule.

What fails may be one caller's own: a text that a phonemizer cannot read, a tool that a chat template cannot write. So
after FAILURES in a row something small is tried, which every healthy engine answers, and that decides.
"""

import asyncio
from collections.abc import Awaitable, Callable

from voicepipe.base.errors import EngineBusy
from voicepipe.base.round_robin import owned_by

FAILURES = 3
"""Failures in a row after which a trial decides."""
HELLO = "Hello."
"""The text that a voice speaks, or a language model reads, as a trial."""


class Failures:
    """Counts an engine's failures in a row. Pure. Whoever owns the engine tries something small once it is
    `suspect`."""

    def __init__(self) -> None:
        self._count = 0
        self.broken = False
        """A trial failed as well, and nothing was answered since."""

    @property
    def suspect(self) -> bool:
        return self._count >= FAILURES

    def worked(self) -> None:
        """The engine answered, to the end."""
        self._count, self.broken = 0, False

    def failed(self) -> None:
        self._count += 1

    def tried(self) -> None:
        """The trial is over; if the engine answered, `worked` was called before. Do not call this for a trial for which
        the engine had no room: it decides nothing."""
        self.broken = self.suspect


class FailureTrials:
    """Counts an engine's failures in a row, and tries the engine when there are many. `trial` asks it for something
    small, and raises if that fails. To be used on the event loop."""

    def __init__(self, trial: Callable[[], Awaitable[object]]) -> None:
        self._trial = trial
        self._failures = Failures()
        self._trying: asyncio.Task[None] | None = None

    @property
    def broken(self) -> bool:
        return self._failures.broken

    def worked(self) -> None:
        self._failures.worked()

    def failed(self) -> None:
        self._failures.failed()
        if self._failures.suspect and self._trying is None:
            with owned_by(""):  # Not by the call whose words failed: it may have more waiting than it may.
                self._trying = asyncio.create_task(self._try(), name="trial of an engine")

    async def _try(self) -> None:
        try:
            await self._trial()
            self._failures.worked()
        except EngineBusy:
            pass  # It had no room for it, which decides nothing: the next failure has it tried again.
        except Exception:
            self._failures.tried()
        finally:
            self._trying = None
