"""Calls that a directory of the fleet has handled: each is handled once, though a provider reports it twice, or to two
directories."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from voicepipe.directory.bus import Bus, decoding

CLAIMS = "vp.claim"
"""Subject of `Claim`, from the directory that has handled the call."""
KEPT = 10_000
"""Calls that are remembered."""


class Claim(msgspec.Struct, frozen=True):
    """A call that was handled, by the id that its provider gives it."""

    call: str


class CallClaims:
    """The calls that a directory knows to be handled. A call is announced to the others only once it is handled: if its
    directory dies before, the next one that the provider asks handles it. Two that get a call at the very same time may
    both place it: then the provider carries out only the first of their commands, by the id that these have in
    common."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._known: dict[str, None] = {}
        """Ids of calls, the oldest first."""
        self._under_way: set[str] = set()

    async def run(self) -> None:
        """Receive other directories' claims, until cancelled."""
        async with self._bus.listen(CLAIMS) as messages:
            async for message in messages:
                with decoding(message):
                    self._remember(msgspec.json.decode(message.data, type=Claim).call)

    @contextmanager
    def seeing_to(self, call: str) -> Iterator[bool]:
        """Whether the call is to be handled within the context: it is not handled yet, nor being handled here."""
        wanted = call not in self._known and call not in self._under_way
        if wanted:
            self._under_way.add(call)
        try:
            yield wanted
        finally:
            if wanted:
                self._under_way.discard(call)

    async def done(self, call: str) -> None:
        """The call was handled: announce it."""
        self._remember(call)
        await self._bus.publish(CLAIMS, msgspec.json.encode(Claim(call)))

    def _remember(self, call: str) -> None:
        self._known[call] = None
        if len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
