"""Calls that a directory of the fleet has taken on: what a provider tells twice, or two directories, is done once."""

import logging

import msgspec

from voicepipe.directory.bus import Bus

logger = logging.getLogger(__name__)

CLAIMS = "vp.claim"
"""`Claim`, from the directory that takes the call on."""
KEPT = 10_000
"""Calls that are remembered."""


class Claim(msgspec.Struct, frozen=True):
    """A call, by the id that its provider gives it."""

    call: str


class Claims:
    """Of one directory. Two that are told of a call at the very same time may both take it on: then the provider does
    only the first of their orders, by the id that these have in common."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._known: dict[str, None] = {}
        """The oldest first."""

    async def run(self) -> None:
        """Hear of other directories' calls, until cancelled."""
        async with self._bus.listen(CLAIMS) as messages:
            async for message in messages:
                try:
                    self._remember(msgspec.json.decode(message.data, type=Claim).call)
                except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
                    logger.warning("%s: a message cannot be read, is it of another version? %s", message.subject, error)

    async def take(self, call: str) -> bool:
        """False: it was taken on before."""
        if call in self._known:
            return False
        self._remember(call)
        await self._bus.publish(CLAIMS, msgspec.json.encode(Claim(call)))
        return True

    def _remember(self, call: str) -> None:
        self._known[call] = None
        if len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
