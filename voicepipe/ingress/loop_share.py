"""Shares of the event loop, which carries all other calls too: requests of a call's clients, and of a key, are carried
out as long as they take no more than their share.

What counts is the processor's time that their messages take, and the replies that they ask for, not the time that
passes meanwhile. A client that sends faster than that is slowed, and notified; no message is dropped. The busier the
loop is, the smaller is the share.
"""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from typing import Any

from voicepipe.base.cpu_metering import Metered, PaidBy, Payer
from voicepipe.base.errors import OverShare
from voicepipe.base.token_bucket import Allowance, Bucket, Rate
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.throttle import RecentSources

BURST_S = 0.1
"""Seconds of the loop's time that a call can save up at most. It begins with none saved: a client who begins call after
call would otherwise have as many bursts."""
SLICE_S = 0.004
"""Seconds for which one call's messages are carried out at a stretch. A request that is cancelled within them never
runs."""
FREE, FULL = 0.6, 0.9
"""Up to the first a loop counts as free, and a call has its whole share. From the second on it has `LEAST`. Both are
parts of the time, in which the loop's thread ran for others."""
LEAST = 0.02
"""Part of the loop's time that every call has: twice what sound at its own pace takes, with a reply at a time."""
LOOK_S = 0.1
"""Seconds over which the load of the loop is measured; a call that waits measures again after as long."""
TIMER_S = 0.001
"""Seconds; a shorter wait is not worth a timer."""
FAR_OVER_S, NOTIFIED_EVERY_S = 2.0, 30.0
"""A client that is held up for the first is notified, and not again for the second. Seconds."""
AGAIN_S = 5
"""Seconds in which the largest possible debt is paid."""
ONE_SAVED_MS, MANY_SAVED_MS = 250.0, 1000.0
"""Milliseconds of the loop's time that one `ek_` key can save up at most, and a tenant. Beginning a WebRTC call takes 1
to 5 ms."""
MANY = 2
"""Shares of a client that a tenant's own key has, and all of its `ek_` keys together."""
SURE = Rate(10.0, 2.0)
"""Milliseconds that an `ek_` key has at once, and a second, though its tenant's keys together have nothing left:
otherwise one browser could keep all others out."""


class LoopLoad:
    """Measures how busy the loop is with others: the part of the time in which its thread ran for them. Pure."""

    def __init__(self, now: float, busy: float) -> None:
        self._at, self._busy = now, busy
        self._part = 0.0

    def room(self, now: float, busy: float) -> float:
        """1 while the loop is free, 0 when it is full. `busy`: seconds for which it ran for others until `now`."""
        if now - self._at >= LOOK_S:
            self._part = (busy - self._busy) / (now - self._at)
            self._at, self._busy = now, busy
        return min(1.0, max(0.0, (FULL - self._part) / (FULL - FREE)))


class CallLoopShare:
    """The share of the event loop's time that one call has for all its clients."""

    def __init__(
        self,
        percent: int,
        clock: Callable[[], float] = time.monotonic,
        busy: Callable[[], float] = time.thread_time,
    ) -> None:
        self._percent = percent
        self._clock = clock
        self._busy = busy
        self._budget = Bucket(Rate(BURST_S, percent / 100), owes=math.inf)
        self._pay(BURST_S)
        self._load = LoopLoad(clock(), busy())
        self._slice = self._own = 0.0
        self._delayed_s = 0.0
        self._reported_at = float("-inf")

    def payer(self) -> Payer:
        """Pays for work that clients cause. A new one each time: it refers to this object, and kept here would be a
        reference cycle."""
        return Payer(self._used, self._busy)

    async def spend(self, asked: Coroutine[Any, Any, None], notify: Callable[[str], None]) -> None:
        """Carry out one message; returns when the next one may be. `notify` notifies a client that is held up for
        long."""
        payer = self.payer()
        with PaidBy(payer):
            await Metered(asked, payer)
        if self._slice >= SLICE_S:
            await self.rest(notify)

    async def rest(self, notify: Callable[[str], None]) -> None:
        """Yield to the loop, and wait until this call has a share of it again."""
        self._slice = 0.0
        wait_s = self._wait_s()
        self._delayed_s = self._delayed_s + wait_s if wait_s else 0.0
        if self._delayed_s >= FAR_OVER_S:
            self._complain(notify)
        while True:
            await asyncio.sleep(min(wait_s, LOOK_S))
            wait_s = self._wait_s()  # again, since the loop may be busier by now, or less
            if wait_s <= TIMER_S:
                return

    def _wait_s(self) -> float:
        """Seconds that the call has to wait, as busy as the loop is now."""
        now = self._clock()
        self._budget.set_rate(max(LEAST, self._percent / 100 * self._load.room(now, self._busy() - self._own)), now)
        return self._budget.wait_s(now)

    def _complain(self, notify: Callable[[str], None]) -> None:
        now = self._clock()
        if now - self._reported_at < NOTIFIED_EVERY_S:
            return
        self._reported_at = now
        notify(
            f"Your messages take more of this server's time than your share, which is {self._percent} % at most "
            "and less while other callers need it: they are carried out more slowly. Send fewer, or smaller ones."
        )

    def _used(self, seconds: float) -> None:
        self._slice += seconds
        self._own += seconds
        self._pay(seconds)

    def _pay(self, seconds: float) -> None:
        self._budget.has(self._clock())
        self._budget.take(seconds)


class KeyLoopShare:
    """The share of the event loop's time that requests of keys have, to read what they bring and to begin their calls.
    A call's messages wait for their turn; a request that comes too early is refused, with the time when it may come
    again, since waiting requests would fill the memory, as many as there are connections.

    `percent`: as `limits.client_percent`. Times are monotonic seconds."""

    def __init__(self, percent: int) -> None:
        each = 10.0 * percent
        one, many = Rate(ONE_SAVED_MS, each), Rate(MANY_SAVED_MS, MANY * each)
        self._tenants = RecentSources[str, Bucket](lambda: Bucket(many))
        """Milliseconds that each tenant's own key has."""
        self._commons = RecentSources[str, Bucket](lambda: Bucket(many))
        """Milliseconds that all `ek_` keys of a tenant have, apart from its own key."""
        self._own = RecentSources[tuple[str, str], Bucket](lambda: Bucket(one))
        """Milliseconds that each `ek_` key has."""
        self._sure = RecentSources[tuple[str, str], Bucket](lambda: Bucket(SURE))

    def check(self, who: Caller, now: float) -> None:
        """Raises OverShare: the requests of this key took too much."""
        if not self._milliseconds(who).has(now):
            raise OverShare(
                "What is asked for with this key takes more of this server's time than its share: ask less often, or "
                f"with shorter sessions, and again in {AGAIN_S} s."
            )

    def took(self, who: Caller, seconds: float, now: float) -> None:
        """Count processor time that the requests of this key have taken."""
        milliseconds = self._milliseconds(who)
        milliseconds.has(now)
        milliseconds.take(1000 * seconds)

    def _milliseconds(self, who: Caller) -> Bucket | Allowance:
        """What is left for this key."""
        if not who.secret:
            return self._tenants[who.tenant.name]
        key = who.tenant.name, who.secret
        return Allowance(self._commons[who.tenant.name], self._own[key], self._sure[key])
