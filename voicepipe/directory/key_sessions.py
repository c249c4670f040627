"""Sessions of `ek_` keys that directories made, at the PoP that their holders may call; and the tenants of calls by
SIP, which bring no token and have an empty session. Pure except for waiting."""

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

WAIT_S = 1.0
"""Seconds that a caller who comes before their session waits for it."""
KEPT_S = 90.0
"""Seconds for which a session is kept: a token is valid for a minute, and for half of one more by clocks that
differ."""
KEPT_BYTES = 32 * 1024 * 1024
"""Bytes of all sessions. Beyond that, the tenant with the most loses its oldest."""


class _WaitingSession(NamedTuple):
    session: bytes
    until: float


class KeySessions:
    """The sessions, by the ids of their calls' placements, for each tenant. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: dict[str, dict[str, _WaitingSession]] = {}
        """Sessions by tenant, the oldest first."""
        self._size: dict[str, int] = {}
        """Bytes by tenant."""
        self._came = asyncio.Condition()

    async def put(self, tenant: str, placement_id: str, session: bytes) -> None:
        """A session has come by the bus."""
        self._forget_old()
        theirs = self._sessions.setdefault(tenant, {})
        before = theirs.pop(placement_id, None)
        theirs[placement_id] = _WaitingSession(session, self._clock() + KEPT_S)
        self._size[tenant] = self._size.get(tenant, 0) + len(session) - (len(before.session) if before else 0)
        while sum(self._size.values()) > KEPT_BYTES:
            self._forget(max(self._size, key=self._size.__getitem__))
        async with self._came:
            self._came.notify_all()

    def owner(self, placement_id: str) -> str:
        """The tenant of a call whose session has come; empty: none has."""
        return next((tenant for tenant, theirs in self._sessions.items() if placement_id in theirs), "")

    async def get(self, tenant: str, placement_id: str) -> bytes | None:
        """The session of a call. None: it did not come within `WAIT_S`."""
        try:
            async with asyncio.timeout(WAIT_S), self._came:
                await self._came.wait_for(lambda: placement_id in self._sessions.get(tenant, ()))
        except TimeoutError:
            return None
        return self._sessions[tenant][placement_id].session

    def _forget_old(self) -> None:
        now = self._clock()
        for tenant in list(self._sessions):
            while (theirs := self._sessions.get(tenant)) and next(iter(theirs.values())).until <= now:
                self._forget(tenant)

    def _forget(self, tenant: str) -> None:
        """Forget the tenant's oldest session."""
        theirs = self._sessions[tenant]
        self._size[tenant] -= len(theirs.pop(next(iter(theirs))).session)
        if not theirs:
            del self._sessions[tenant], self._size[tenant]
