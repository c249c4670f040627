"""Is an engine alive that works in another process? Pure, but for the clock that it is given.

It is down

- when nobody answers at its address;
- when answers in a row failed, and a trial as well (`failures.py`);
- when somebody waits, or gave up waiting, and for too long nothing has come of any request. How long depends on what is
  asked for; of several requests the longest counts.

A request that a caller gave up is still pending: callers are patient for five seconds, and an engine that hangs would
never be found out. Whoever owns it then asks for something small. What was given up within SOON_S is not pending: that
happens to guesses at what a caller will say all the time.
"""

import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from voicepipe.engines.hosting.failures import Failures

T = TypeVar("T")
SOON_S = 1.0


class Liveness:
    """Whether one engine in another process is alive, judged by the answers that are pending and by those that came."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.gone = False
        """Nobody answered at its address, and no answer was complete since: one that is loading its model may fail."""
        self._failures = Failures()
        self._since: float | None = None
        """Since when an answer is pending and nothing has come."""
        self._open: list[float] = []
        """Seconds that each request may take of which somebody waits for more."""
        self._given_up_s = 0.0
        """The longest of the requests that were given up since."""

    async def next(self, stream: AsyncGenerator[T, Any], within_s: float) -> T | None:
        """The next piece of a request's answer, which may take `within_s`; None: that was all of it."""
        with self.asked(within_s):
            return await anext(stream, None)

    @contextmanager
    def asked(self, within_s: float) -> Iterator[None]:
        """A context in which somebody waits for something that may take `within_s` without any sign of life."""
        self._since = self._clock() if self._since is None else self._since
        self._open.append(within_s)
        try:
            yield
        finally:
            self._open.remove(within_s)
            self._given_up_s = max(self._given_up_s, within_s)
            if not self._open and self._since is not None and self._clock() - self._since < SOON_S:
                self._since, self._given_up_s = None, 0.0

    def moved(self) -> None:
        """Note that something came of a request: a piece of the answer, or a refusal."""
        self._since, self._given_up_s = self._clock() if self._open else None, 0.0

    def worked(self) -> None:
        """Note that an answer is complete."""
        self.moved()
        self.gone = False
        self._failures.worked()

    def failed(self) -> None:
        """Note that an answer was none, or broke off."""
        self.moved()
        self._failures.failed()

    def tried(self) -> None:
        """Note that something small was asked for; if that worked, `worked` was called before."""
        self._failures.tried()

    @property
    def needs_trial(self) -> bool:
        """Whether to ask the engine for something small: an answer is pending that nobody waits for any more, or the
        engine may be down."""
        return self.gone or self._failures.suspect or (self._since is not None and not self._open)

    @property
    def alive(self) -> bool:
        late = self._since is not None and self._clock() - self._since > max([*self._open, self._given_up_s])
        return not (self.gone or late or self._failures.broken)
