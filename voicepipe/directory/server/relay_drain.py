"""A directory that is stopped waits for the calls that it relays: a rolling upgrade of directories cuts none."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from voicepipe.base.errors import Draining

logger = logging.getLogger(__name__)


class RelayDrain:
    """The calls that a directory relays, and whether it is about to stop. All other calls go on without it."""

    def __init__(self) -> None:
        self.has_begun = False
        self.calls = 0
        """Calls that are relayed."""
        self._empty = asyncio.Event()
        self._empty.set()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Counts one more relayed call within the context. Raises Draining."""
        if self.has_begun:
            raise Draining("This directory is being stopped and relays no new calls; try again, or ask another one.")
        self.calls += 1
        self._empty.clear()
        try:
            yield
        finally:
            self.calls -= 1
            if not self.calls:
                self._empty.set()

    async def over(self, drain_s: float) -> None:
        """Relay no new calls; returns when the last one has ended, or after `drain_s`."""
        self.has_begun = True
        if self.calls:
            said = "calls still relayed: %d; they have %.0f s to end, a second signal ends them now"
            logger.warning(said, self.calls, drain_s)
        try:
            async with asyncio.timeout(drain_s):
                await self._empty.wait()
        except TimeoutError:
            logger.warning("calls still relayed after %.0f s: %d; ending them", drain_s, self.calls)
