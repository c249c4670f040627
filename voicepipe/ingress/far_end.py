"""The far end of a line: how much the caller has heard, where their side reports nothing. It plays at once, a little
late."""

import asyncio
from collections.abc import Callable

from voicepipe.base.errors import KeysFailed, TransferFailed
from voicepipe.base.networks import is_of
from voicepipe.line import NO_TRANSFER, TAKES_NO_KEYS, OnKeys

OnAudio = Callable[[bytes, float], None]
"""Called with the sound that a line sends, encoded (empty where nobody needs it), and its length in milliseconds."""
MOST_KEYS = 80
"""Keys and pauses that may wait to be sent: some 20 s of keys."""


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
        self._keys_waiting = 0
        self._dialling: set[asyncio.Task[None]] = set()
        """Send keys, one after the other."""
        self._dial_turn = asyncio.Lock()

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

    @property
    def lacks_keys(self) -> str:
        """As `Line.lacks_keys`: a program or a browser has no telephone."""
        return TAKES_NO_KEYS

    def send_keys(self, keys: str, on_sent: OnKeys = lambda keys: None) -> "asyncio.Future[None]":
        """As `Line.send_keys`."""
        if why := self.lacks_keys:
            raise KeysFailed(why)
        if self._keys_waiting + len(keys) > MOST_KEYS:
            raise KeysFailed(f"Too many keys wait to be sent, at most {MOST_KEYS} may: send these a little later.")
        self._keys_waiting += len(keys)
        task = asyncio.get_running_loop().create_task(self._dial_in_turn(keys, on_sent))
        self._dialling.add(task)
        task.add_done_callback(self._dialling.discard)
        return task

    async def _dial_in_turn(self, keys: str, on_sent: OnKeys) -> None:
        try:
            async with self._dial_turn:
                await self._dial(keys, on_sent)
        finally:
            self._keys_waiting -= len(keys)

    async def _dial(self, keys: str, on_sent: OnKeys) -> None:
        """Send keys, as `Line.send_keys`; none are being sent. Raises KeysFailed."""
        raise KeysFailed(TAKES_NO_KEYS)

    async def hang_up(self) -> None:
        """Let the caller hear what was sent, then end the call."""
        if not self.ended:
            await asyncio.sleep(self._far.remaining_s())
        self.end()

    def end(self) -> None:
        """As `HostedLine.end`."""
        self.ended = True
        self._stop_dialling()

    def _stop_dialling(self) -> None:
        for task in self._dialling:
            task.cancel()
