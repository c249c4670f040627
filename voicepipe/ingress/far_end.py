"""The far end of a line: how much the caller has heard, where their side reports nothing. It plays at once, a little
late."""

import asyncio
from collections.abc import Callable

from voicepipe.base.errors import KeysFailed, TransferFailed
from voicepipe.base.networks import is_of
from voicepipe.line import NO_TRANSFER, TAKES_NO_KEYS

OnAudio = Callable[[bytes, float], None]
"""Called with the sound that a line sends, encoded (empty where nobody needs it), and its length in milliseconds."""


class FarEnd:
    """Estimates how much the caller has heard, where their side reports nothing. Counts samples at `rate` Hz.
    `delay_s`: delay of the network and of their buffer together."""

    def __init__(self, rate: int, clock: Callable[[], float], delay_s: float = 0.0) -> None:
        self._rate = rate
        self._clock = clock
        self._delay_s = delay_s
        self.sent = 0
        self._base = 0
        """Samples sent before `_since`, all of them played by then."""
        self._since = 0.0

    def send(self, samples: int) -> None:
        """Count so many samples as sent now."""
        if self.played() >= self.sent:
            self._base, self._since = self.sent, self._clock() + self._delay_s
        self.sent += samples

    def played(self) -> int:
        """Samples that the caller has heard: min(sent, time since the first of them was played)."""
        return min(self._most(), self._base + max(0, int((self._clock() - self._since) * self._rate)))

    def _most(self) -> int:
        """Samples that may have been played by now."""
        return self.sent

    def clear(self) -> int:
        """Drop what was not played yet. Returns those samples: they count neither as sent nor as played."""
        played = self.played()
        lost, self.sent, self._base = self.sent - played, played, played
        return lost

    def remaining_s(self) -> float:
        """Seconds until all of it has been played."""
        return (self.sent - self.played()) / self._rate


class FarEndLine:
    """The common part of `HostedLine`s: how much the caller has heard, and hanging up once it is all. Only telephones
    can be transferred or take keys. `network`: the one the caller calls from, as their token says."""

    transfers = False
    ended = False

    def __init__(self, far: FarEnd, network: str) -> None:
        self.on_audio: OnAudio | None = None
        self.source: Callable[[], str] = str
        """The IP address that the caller's sound comes from; empty: it is unknown."""
        self._far = far
        self._network = network

    @property
    def caller_network(self) -> str:
        """The caller's network as their token says, unless the sound comes from elsewhere: then another program asked
        for the call."""
        return self._network if is_of(self.source(), self._network) else ""

    def played(self) -> int:
        return self._far.played()

    async def transfer(self, target: str) -> None:
        """Raises TransferFailed: a program or a browser cannot be sent elsewhere."""
        raise TransferFailed(NO_TRANSFER)

    def send_keys(self, digits: str) -> None:
        """Raises KeysFailed: a program or a browser has no telephone."""
        raise KeysFailed(TAKES_NO_KEYS)

    async def hang_up(self) -> None:
        """Let the caller hear what was sent, then end the call."""
        if not self.ended:
            await asyncio.sleep(self._far.remaining_s())
        self.end()

    def end(self) -> None:
        """As `HostedLine.end`."""
        self.ended = True
