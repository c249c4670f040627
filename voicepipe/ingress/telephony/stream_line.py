"""A phone caller's audio on a provider's media stream: base64 messages in, paced messages out, marks that come back."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from voicepipe.audio import RATE, Pcm, samples_to_ms
from voicepipe.audio.resample import Resampler
from voicepipe.base.networks import network_of
from voicepipe.ingress.asgi_scope import Peer
from voicepipe.ingress.blocks import BlockQueue
from voicepipe.ingress.far_end import FarEnd
from voicepipe.ingress.socket_line import SocketLine
from voicepipe.ingress.telephony.dialects import Dialect, SoundFormat
from voicepipe.line import PAUSES, OnKeys

MARK_MS = 200
"""A mark follows each so many milliseconds of sound: it comes back once they were played."""
KEY_S = 0.35
"""Seconds that a provider is taken to need for a key: Telnyx's tone of 250 ms by default, and a pause behind it."""


class Marks(FarEnd):
    """Measures how much of what was sent the provider has played: exact where a mark comes back, by the clock from
    there on. Until the next mark is back, its sound does not count as all played; unless none has ever come back, which
    means that this provider does not send them. Counts samples at `rate` Hz."""

    def __init__(self, rate: int, clock: Callable[[], float]) -> None:
        super().__init__(rate, clock)
        self._pending: deque[tuple[str, int]] = deque()
        """Marks that have not come back, each with the samples that had been sent before it."""
        self._number = 0
        self._marked = 0
        self._come_back = False

    def due(self) -> str:
        """The mark that is to follow what was sent; empty: none."""
        if self.sent - self._marked < self._rate * MARK_MS // 1000:
            return ""
        self._number += 1
        self._marked = self.sent
        self._pending.append((str(self._number), self.sent))
        return str(self._number)

    def back(self, name: str) -> None:
        """A mark came back. One that is unknown, or whose sound was cleared, has no effect."""
        if any(name == pending for pending, _ in self._pending):
            self._come_back = True
            while self._pending:
                mark, sent = self._pending.popleft()
                if mark == name:
                    self._base, self._since = sent, self._clock()
                    return

    def _most(self) -> int:
        return self._pending[0][1] if self._pending and self._come_back else self.sent

    def clear(self) -> int:
        """As `FarEnd.clear`; the marks of what is cleared come back all the same."""
        lost = super().clear()
        self._marked = self.sent
        self._pending.clear()
        return lost


class ProviderCommands(NamedTuple):
    """The commands about one call that its provider takes. Each gets a target, or keys."""

    transfer: Callable[[str], Awaitable[None]]
    send_keys: Callable[[str], Awaitable[None]]


class StreamLine(SocketLine):
    """The `HostedLine` of a media stream. `say` takes messages for the provider."""

    setup_ms = 0
    transfers = True
    sound_comes = "Audio comes from the caller's telephone, not in events."

    def __init__(
        self,
        dialect: Dialect,
        stream_id: str,
        sounds: tuple[SoundFormat, SoundFormat],
        say: Callable[[bytes], None],
        commands: ProviderCommands,
        clock: Callable[[], float] = time.monotonic,
        peer: Peer | None = None,
        network: str = "",
    ) -> None:
        """`sounds`: the formats of the caller's and of our sound; `peer`: the provider's connection; `network`: as
        `Grant.network`."""
        self._in, self._out = sounds
        self.out_rate = self._out.rate
        self._marks = Marks(self.out_rate, clock)
        super().__init__(BlockQueue(clock), self._marks, peer, network)
        self.transferring = False
        """The call is being transferred, or was."""
        self.kind: str = dialect.kind
        self._dialect = dialect
        self._stream_id = stream_id
        self._say = say
        self._commands = commands
        self._queue.cutter.narrow = self._in.rate < RATE
        self._resample = Resampler(self._in.rate, RATE, in_step=True)

    async def hear(self, payload: bytes, arrived: float) -> None:
        """Queue the caller's sound, which reached the socket at the monotonic second `arrived`. Waits while the call is
        far behind."""
        self._queue.push(self._resample(self._in.decode(payload)), arrived)
        await self._queue.room.wait()

    def mark(self, name: str) -> None:
        """A mark came back."""
        self._marks.back(name)

    def send(self, pcm: Pcm) -> None:
        self._marks.send(pcm.size)
        self._say(self._dialect.media(self._stream_id, self._out.encode(pcm)))
        if mark := self._marks.due():
            self._say(self._dialect.mark(self._stream_id, mark))
        if self.on_audio:
            self.on_audio(b"", samples_to_ms(pcm.size, self.out_rate))

    def clear(self) -> int:
        """Drop what the provider has not played."""
        lost = self._marks.clear()
        if lost:
            self._say(self._dialect.clear(self._stream_id))
        return lost

    @property
    def caller_network(self) -> str:
        """The caller's network, by the directory: streams come from the provider's own network, whoever calls. One from
        a private address has come through a proxy."""
        return self._network if self._peer and network_of(self._peer.address) else ""

    async def transfer(self, target: str) -> None:
        """Transfer the call as the provider can. Raises TransferFailed."""
        self.transferring = True
        try:
            await self._commands.transfer(target)
        except BaseException:
            self.transferring = False
            raise

    @property
    def lacks_keys(self) -> str:
        """As `Line.lacks_keys`."""
        return self._dialect.lacks_keys

    async def _dial(self, keys: str, on_sent: OnKeys) -> None:
        """Have the provider send keys. It gets all of them at once, keeps the pauses, and cannot be called back; when
        it is done it does not say."""
        try:
            await self._commands.send_keys(keys)
        except asyncio.CancelledError:
            on_sent(keys)  # It may have got them.
            raise
        on_sent(keys)
        await asyncio.sleep(sum(PAUSES.get(key, KEY_S) for key in keys))
