"""The drain of a PoP: it takes no new calls, and waits for those that go on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)
SOON_S = 1
"""Seconds: calls that end within so many are not logged."""


class CallDrain:
    """Waits for the end of all calls. `over` returns then; `calls` is how many go on; `within_s`: seconds that they
    have, from the first `wait` on."""

    def __init__(
        self, over: Callable[[], Awaitable[None]], calls: Callable[[], int], within_s: Callable[[], float]
    ) -> None:
        self.has_begun = False
        self._over = over
        self._calls = calls
        self._within_s = within_s
        self._until: float | None = None
        """When it ends, on the event loop's clock."""
        self._given_up = asyncio.Event()

    async def wait(self) -> None:
        """Returns when the last call has ended, when their time is over, or when they are given up."""
        self.has_begun = True
        now = asyncio.get_running_loop().time()
        self._until = self._until or now + self._within_s()
        left_s = max(0.0, self._until - now)
        ends = {asyncio.ensure_future(self._over()), asyncio.ensure_future(self._given_up.wait())}
        first = asyncio.FIRST_COMPLETED
        try:
            done, _ = await asyncio.wait(ends, timeout=min(SOON_S, left_s), return_when=first)
            if done or not left_s:
                return
            logger.warning("calls still going on: %d; they have %.0f s to end, a second signal ends them now",
                           self._calls(), left_s)  # fmt: skip
            done, _ = await asyncio.wait(ends, timeout=left_s - SOON_S, return_when=first)
            if not done:
                logger.warning("calls still going on after %.0f s: %d; ending them", left_s, self._calls())
        finally:
            for end in ends:
                end.cancel()

    def give_up(self) -> None:
        """Wait no longer, now and whenever it is asked for again."""
        self._given_up.set()
