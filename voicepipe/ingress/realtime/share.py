"""A client's share of the event loop, which carries all other calls too: its messages are carried out as long as they
take no more of it.

What counts is the processor's time that its own messages take, and the replies that they ask for, not the time that
passes meanwhile. A client that sends faster than that is slowed, and told so; none of its messages is dropped. The
busier the loop is, the smaller is the share: however many clients ask too much, the other calls keep the most of it.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from voicepipe.ingress.realtime.errors import WireError
from voicepipe.metered import Metered, Payer, paid_by

BURST_S = 0.1
"""Of the loop's time that a client has saved up when it begins, and can save up at most."""
SLICE_S = 0.004
"""So much of one client's messages is carried out at a stretch. What they undo among themselves costs nothing."""
FREE, FULL = 0.6, 0.9
"""Up to the first a loop is free: a client has its whole share. From the second on it has `LEAST` of it. Both are parts
of the time in which the loop's thread ran."""
LEAST = 0.3
"""Of a share of 10 %: some three times what sound at its own pace takes, with a reply at a time."""
LOOK_S = 0.1
"""How busy the loop is, is seen over at least so long; who waits looks again after as long."""
TIMER_S = 0.001
"""No shorter time is worth a timer."""
FAR_OVER_S, TOLD_EVERY_S = 2.0, 30.0
"""A client that was held up for so long is told, and not again for a while."""


class Budget:
    """Seconds of the loop's time, which come in at a rate: so many a second. Pure."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._left = BURST_S
        self._at = now

    def set_rate(self, rate: float, now: float) -> None:
        """They come in so from now on."""
        self.pay(0.0, now)
        self._rate = rate

    def pay(self, seconds: float, now: float) -> None:
        """They were used by the second `now`."""
        self._left = min(BURST_S, self._left + (now - self._at) * self._rate) - seconds
        self._at = now

    def wait_s(self, now: float) -> float:
        """Seconds until what was used too much has come in."""
        return max(0.0, -self._left / self._rate - (now - self._at))


class Load:
    """How busy the loop is: the part of the time in which its thread ran. Pure."""

    def __init__(self, now: float, busy: float) -> None:
        self._at, self._busy = now, busy
        self._part = 0.0

    def part_of_share(self, now: float, busy: float) -> float:
        """1 while the loop is free, `LEAST` when it is full. `busy`: seconds for which the thread ran until `now`."""
        if now - self._at >= LOOK_S:
            self._part = (busy - self._busy) / (now - self._at)
            self._at, self._busy = now, busy
        return min(1.0, max(LEAST, (FULL - self._part) / (FULL - FREE)))


class Share:
    """One client's. `tell` gets the error that it is to read."""

    def __init__(
        self,
        percent: int,
        tell: Callable[[WireError], None],
        clock: Callable[[], float] = time.monotonic,
        busy: Callable[[], float] = time.thread_time,
    ) -> None:
        self._percent = percent
        self._tell = tell
        self._clock = clock
        self._busy = busy
        self._budget = Budget(percent / 100, clock())
        self._load = Load(clock(), busy())
        self._slice = 0.0
        self._held_up = 0.0
        self._told_at = float("-inf")

    async def spend(self, asked: Coroutine[Any, Any, None]) -> None:
        """Carry out one message; returns when the next one may be."""
        payer = Payer(self._used, self._busy)  # kept by nobody: it knows us, and would be a circle
        with paid_by(payer):
            await Metered(asked, payer)
        if self._slice >= SLICE_S:
            await self.rest()

    async def rest(self) -> None:
        """Let the others have the loop, and wait until this client has a share of it again."""
        self._slice = 0.0
        wait_s = self._wait_s()
        self._held_up = self._held_up + wait_s if wait_s else 0.0
        if self._held_up >= FAR_OVER_S:
            self._complain()
        while True:
            await asyncio.sleep(min(wait_s, LOOK_S))
            wait_s = self._wait_s()  # again, since the loop may be busier by now, or less
            if wait_s <= TIMER_S:
                return

    def _wait_s(self) -> float:
        """For so long it has to wait, as busy as the loop is now."""
        now = self._clock()
        self._budget.set_rate(self._percent / 100 * self._load.part_of_share(now, self._busy()), now)
        return self._budget.wait_s(now)

    def _complain(self) -> None:
        now = self._clock()
        if now - self._told_at < TOLD_EVERY_S:
            return
        self._told_at = now
        self._tell(
            WireError(
                "rate_limit_exceeded",
                f"Your messages take more of this server's time than your share, which is {self._percent} % at most "
                "and less while other callers need it: they are carried out more slowly. Send fewer, or smaller ones.",
                kind="rate_limit_error",
            )
        )

    def _used(self, seconds: float) -> None:
        self._slice += seconds
        self._budget.pay(seconds, self._clock())
