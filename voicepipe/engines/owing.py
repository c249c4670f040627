"""Is an engine alive that works in another process? Pure, but for the clock that it is given.

It is down when it is gone, when FAILURES requests in a row failed and a trial as well, and when it owes something and
nothing has come of any request for longer than the one it owes most for may take. What a caller gave up it still owes:
callers are patient for five seconds, and an engine that hangs would never be found out. Whoever owns it then asks for
something small, and so it does after failures: one client's tools may have caused them.
What was given up within SOON_S is no debt: guesses at what a caller will say are, all the time. Nor is what nobody asks
for: while a call is on hold its reply is not taken further.
"""

import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from voicepipe.engines.life import FAILURES

T = TypeVar("T")
SOON_S = 1.0


class Owing:
    """What one engine owes us."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.gone = False
        """Nobody answers at its address."""
        self.open = 0
        """Requests of which somebody waits for more."""
        self._failures = 0
        self._broken = False
        """It failed a trial."""
        self._since: float | None = None
        self._within_s = 0.0

    async def next(self, stream: AsyncGenerator[T, Any], within_s: float) -> T | None:
        """What comes next of a request, which may take so long; None: that was all of it."""
        with self.asked(within_s):
            return await anext(stream, None)

    @contextmanager
    def asked(self, within_s: float) -> Iterator[None]:
        """Somebody waits, for something that may be without any sign of life for so long."""
        self._since = self._clock() if self._since is None else self._since
        self._within_s = max(self._within_s, within_s)
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1
            if not self.open and self._since is not None and self._clock() - self._since < SOON_S:
                self._settle()

    def moved(self) -> None:
        """Something came of a request, be it a refusal."""
        self.gone, self._failures, self._broken = False, 0, False
        if self.open:
            self._since = self._clock()
        else:
            self._settle()

    def failed(self) -> None:
        """What came is no answer."""
        failures, broken = self._failures + 1, self._broken
        self.moved()
        self._failures, self._broken = failures, broken

    def tried(self) -> None:
        """Something small was asked for, and did not mend what is held against it, or did."""
        self._broken = self._failures >= FAILURES

    @property
    def forgotten(self) -> bool:
        """It owes something that nobody waits for any more, or may be down: ask for something small."""
        return self.gone or self._failures >= FAILURES or (self._since is not None and not self.open)

    @property
    def alive(self) -> bool:
        late = self._since is not None and self._clock() - self._since > self._within_s
        return not (self.gone or late or self._broken)

    def _settle(self) -> None:
        self._since, self._within_s = None, 0.0
