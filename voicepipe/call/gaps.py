"""Silence is counted in the caller's sound, and a client that stops sending (a button let go, a muted microphone) sends
none either."""

import asyncio
from collections.abc import Callable

from voicepipe.call.ear import Ear
from voicepipe.turn.facts import Fact

GAP_S = 1.0
"""A client that sends nothing for so long has stopped sending: networks rarely stall for as long."""


class Gaps:
    """In one call's sound. `told` gets what it means that none comes."""

    def __init__(self, ear: Ear, told: Callable[[Fact], None], clock: Callable[[], float]) -> None:
        self._ear = ear
        self._told = told
        self._clock = clock
        self._last_at = clock()

    def over(self) -> None:
        """Sound came."""
        self._last_at = self._clock()

    async def mind(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(GAP_S / 4)
            gap = self._clock() - self._last_at
            if gap >= GAP_S and (fact := self._ear.nothing(gap * 1000)):
                self._told(fact)
