"""Calls that a directory of the fleet has seen to: what a provider tells twice, or two directories, is done once."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from voicepipe.directory.bus import Bus, reading

CLAIMS = "vp.claim"
"""`Claim`, from the directory that has seen to the call."""
KEPT = 10_000
"""Calls that are remembered."""


class Claim(msgspec.Struct, frozen=True):
    """A call, by the id that its provider gives it."""

    call: str


class CallClaims:
    """Of one directory. A call is told to the others only once it is seen to: if its directory dies before, the next
    one that the provider asks does it. Two that are told of a call at the very same time may both place it: then the
    provider does only the first of their orders, by the id that these have in common."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._known: dict[str, None] = {}
        """The oldest first."""
        self._under_way: set[str] = set()

    async def run(self) -> None:
        """Hear of other directories' calls, until cancelled."""
        async with self._bus.listen(CLAIMS) as messages:
            async for message in messages:
                with reading(message):
                    self._remember(msgspec.json.decode(message.data, type=Claim).call)

    @contextmanager
    def seeing_to(self, call: str) -> Iterator[bool]:
        """Whether the call is to be seen to within the context: nobody has done it, or is about to do it here."""
        wanted = call not in self._known and call not in self._under_way
        if wanted:
            self._under_way.add(call)
        try:
            yield wanted
        finally:
            if wanted:
                self._under_way.discard(call)

    async def done(self, call: str) -> None:
        """It was seen to."""
        self._remember(call)
        await self._bus.publish(CLAIMS, msgspec.json.encode(Claim(call)))

    def _remember(self, call: str) -> None:
        self._known[call] = None
        if len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
