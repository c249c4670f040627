"""A phone caller's audio on a provider's media stream: base64 messages in, paced messages out, marks that come back."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

from voicepipe.audio import RATE, Pcm, samples_to_ms
from voicepipe.audio.resample import Resampler
from voicepipe.errors import KeysFailed
from voicepipe.ingress.blocks import BlockQueue
from voicepipe.ingress.pacing import by_timer
from voicepipe.ingress.scope import Peer, tcp_network
from voicepipe.ingress.telephony.dialects import Dialect, SoundFormat
from voicepipe.line import Hear, Network, Pump
from voicepipe.networks import network_of

MARK_MS = 200
"""A mark follows each so much sound: it comes back once that was played."""


class Marks:
    """How much of what was sent the provider has played: exact where a mark comes back, by the clock from there on.

    Until the next mark is back, its sound is not all played; unless none has ever come back, which means that this
    provider does not send them. Counts samples at `rate` Hz.
    """

    def __init__(self, rate: int, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self.sent = 0
        self._base = 0
        """Samples played by the second `_since`."""
        self._since = 0.0
        self._pending: deque[tuple[str, int]] = deque()
        """Marks that are out, and what had been sent before each."""
        self._number = 0
        self._marked = 0
        self._come_back = False

    def send(self, samples: int) -> str:
        """So many more are sent now; the mark that is to follow them, or nothing."""
        if self.played() >= self.sent:
            self._base, self._since = self.sent, self._clock()
        self.sent += samples
        if self.sent - self._marked < self._rate * MARK_MS // 1000:
            return ""
        self._number += 1
        self._marked = self.sent
        self._pending.append((str(self._number), self.sent))
        return str(self._number)

    def back(self, name: str) -> None:
        """A mark came back. Nothing happens if it is none of ours, or its sound was cleared."""
        if any(name == pending for pending, _ in self._pending):
            self._come_back = True
            while self._pending:
                known, place = self._pending.popleft()
                if known == name:
                    self._base, self._since = place, self._clock()
                    return

    def played(self) -> int:
        """Of all that was sent."""
        most = self._pending[0][1] if self._pending and self._come_back else self.sent
        return min(most, self._base + max(0, int((self._clock() - self._since) * self._rate)))

    def clear(self) -> int:
        """What was not played yet never will be; its marks come back all the same. Returns those samples, which count
        neither as sent nor as played."""
        played = self.played()
        lost, self.sent, self._base, self._marked = self.sent - played, played, played, played
        self._pending.clear()
        return lost

    def remaining_s(self) -> float:
        """Until all of it has been played."""
        return (self.sent - self.played()) / self._rate


class StreamLine:
    """The `HostedLine` of one stream. `say` takes messages for the provider, `hand_over` transfers the call."""

    lead_ms = 200
    setup_ms = 0
    transfers = True
    listens = True
    sound_comes = "Audio comes from the caller's telephone, not in events."

    def __init__(
        self,
        dialect: Dialect,
        stream_id: str,
        sounds: tuple[SoundFormat, SoundFormat],
        say: Callable[[bytes], None],
        hand_over: Callable[[str], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
        peer: Peer | None = None,
        network: str = "",
    ) -> None:
        """`sounds`: the caller's, and ours; `peer`: the provider's connection; `network`: as `Grant.network`."""
        self.on_audio: Callable[[bytes, float], None] = _unheard
        self.transferring = False
        """Somebody is being asked to take the call, or has taken it."""
        self.kind: str = dialect.kind
        self._dialect = dialect
        self._stream_id = stream_id
        self._in, self._out = sounds
        self.out_rate = self._out.rate
        self._say = say
        self._hand_over = hand_over
        self._queue = BlockQueue(clock)
        self._queue.cutter.narrow = self._in.rate < RATE
        self._resample = Resampler(self._in.rate, RATE, in_step=True)
        self._marks = Marks(self.out_rate, clock)
        self._peer = peer
        self._network = network

    async def hear(self, payload: bytes, arrived: float) -> None:
        """The caller's sound, which reached the socket at the monotonic second `arrived`. Waits while the call is far
        behind."""
        self._queue.push(self._resample(self._in.decode(payload)), arrived)
        await self._queue.room.wait()

    def mark(self, name: str) -> None:
        """A mark came back."""
        self._marks.back(name)

    async def listen(self, hear: Hear) -> None:
        """As `Line.listen`."""
        await self._queue.listen(hear)

    async def pace(self, pump: Pump, wake: asyncio.Event) -> None:
        await by_timer(pump, wake)

    def send(self, pcm: Pcm) -> None:
        mark = self._marks.send(pcm.size)
        self._say(self._dialect.media(self._stream_id, self._out.encode(pcm)))
        if mark:
            self._say(self._dialect.mark(self._stream_id, mark))
        self.on_audio(b"", samples_to_ms(pcm.size, self.out_rate))

    def clear(self) -> int:
        """The provider throws away what it has not played."""
        lost = self._marks.clear()
        if lost:
            self._say(self._dialect.clear(self._stream_id))
        return lost

    def played(self) -> int:
        """As the marks that came back say it, less the way from the provider to us."""
        return self._marks.played()

    def network(self) -> Network:
        return tcp_network(self._peer)

    @property
    def caller_network(self) -> str:
        """Streams come from the provider's own network, whoever calls: the directory names it. One from a private
        address has come through something else."""
        return self._network if self._peer and network_of(self._peer.address) else ""

    async def transfer(self, target: str) -> None:
        """As the provider can. Raises TransferFailed."""
        self.transferring = True
        try:
            await self._hand_over(target)
        except BaseException:
            self.transferring = False
            raise

    def send_keys(self, digits: str) -> None:
        """Raises KeysFailed: streams carry no keys towards the caller."""
        raise KeysFailed("Keys can be sent to calls by SIP alone: Twilio's streams take none, and Telnyx sends them by "
                         "a command of its own, actions/send_dtmf.")  # fmt: skip

    async def hang_up(self) -> None:
        """Let the caller hear what the provider has (`lead_ms` at most), then end the call."""
        if not self._queue.ended:
            await asyncio.sleep(self._marks.remaining_s())
        self.end()

    def end(self) -> None:
        """The caller is gone: what they said is still heard."""
        self._queue.end()

    async def flush(self) -> None:
        """As `BlockQueue.flush`."""
        await self._queue.flush()


def _unheard(data: bytes, ms: float) -> None:
    """Where what is sent is told before a call is there."""
