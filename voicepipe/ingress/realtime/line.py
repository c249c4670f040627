"""A WebSocket caller's audio: base64 messages of any length in, paced packets out."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable

import numpy as np

from voicepipe.audio import BLOCK, RATE, Block, Pcm, Resampler, g711, samples_to_ms
from voicepipe.ingress.realtime.session import Format, PcmFormat, PcmuFormat

PCM_RATE = 24_000
QUEUED = 50
"""Blocks (20 ms each) that may wait for the call; then the socket is read no further. Clients may outrun real time."""


def format_rate(format: Format) -> int:
    """Samples a second of a wire format."""
    return PCM_RATE if isinstance(format, PcmFormat) else g711.RATE


def _law(format: Format) -> str:
    return "pcmu" if isinstance(format, PcmuFormat) else "pcma"


class AudioIn:
    """The client's appended audio as gapless blocks at 16 kHz."""

    def __init__(self, format: Format) -> None:
        self._format = format
        self._resample = Resampler(format_rate(format), RATE, in_step=True)
        self._odd = b""
        self._rest: Pcm = np.empty(0, np.int16)
        self._pos = 0
        self._queue: deque[Block] = deque()
        self.ended = False
        """Nothing more is taken."""
        self._filled = asyncio.Event()
        """The queue has something, or never will have."""
        self._room = asyncio.Event()
        self._room.set()
        self._settled = asyncio.Event()
        """The call has worked through everything and waits for more."""

    def set_format(self, format: Format) -> None:
        """What follows is in another format."""
        if format != self._format:
            self._format, self._odd = format, b""
            self._resample = Resampler(format_rate(format), RATE, in_step=True)

    async def append(self, data: bytes, arrived: float) -> None:
        """Queue audio in the input format, a second at a time: waits while the call is that far behind.

        `arrived` is the monotonic second at which the message reached the socket.
        """
        if isinstance(self._format, PcmFormat):
            data, step = self._odd + data, 2 * PCM_RATE
            data, self._odd = data[: len(data) & ~1], data[len(data) & ~1 :]
        else:
            step = g711.RATE
        for start in range(0, len(data), step):
            self._push(self._resample(self._decode(data[start : start + step])), arrived)
            await self._room.wait()

    async def settle(self) -> None:
        """Complete the last block with silence (19 ms at most), and wait until the call has heard it all."""
        if self._rest.size:
            self._push(np.zeros(BLOCK - self._rest.size, np.int16), time.monotonic())
        await self._settled.wait()

    def end(self) -> None:
        """The caller is gone, or we hang up: what is queued is still heard."""
        self.ended = True
        self._filled.set()

    async def blocks(self) -> AsyncIterator[Block]:
        """The blocks, for one reader."""
        try:
            while True:
                while self._queue:
                    block = self._queue.popleft()
                    if len(self._queue) < QUEUED:
                        self._room.set()
                    yield block
                self._settled.set()
                if self.ended:
                    return
                self._filled.clear()
                await self._filled.wait()
        finally:
            self.ended = True
            self._queue.clear()
            self._room.set()
            self._settled.set()

    def _decode(self, data: bytes) -> Pcm:
        if isinstance(self._format, PcmFormat):
            return np.frombuffer(data, "<i2")
        return g711.decode(_law(self._format), data)

    def _push(self, pcm: Pcm, arrived: float) -> None:
        if self.ended:
            return
        pcm = np.concatenate((self._rest, pcm))
        whole = pcm.size - pcm.size % BLOCK
        self._rest = pcm[whole:]
        for start in range(0, whole, BLOCK):
            self._queue.append(Block(pcm[start : start + BLOCK], self._pos, arrived))
            self._pos += BLOCK
        if whole:
            self._settled.clear()
            self._filled.set()
        if len(self._queue) >= QUEUED:
            self._room.clear()


class WebSocketLine:
    """The `Line` of a Realtime WebSocket. Its audio leaves through `on_audio(encoded, milliseconds)`.

    `out_rate` is settled when the call is answered. If the client changes the output format later, the line converts:
    what playout holds was made for the first rate.
    """

    kind = "websocket"
    lead_ms = 200

    def __init__(
        self,
        input: Format,
        output: Format,
        on_audio: Callable[[bytes, float], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.input = AudioIn(input)
        self.out_rate = format_rate(output)
        self._output = output
        self._convert = Resampler(self.out_rate, self.out_rate)
        self._on_audio = on_audio
        self._clock = clock
        self._sent = 0
        self._base = 0
        """Samples sent before `_since`, all of them played by then."""
        self._since = 0.0

    async def append(self, data: bytes, arrived: float) -> None:
        """As `AudioIn.append`."""
        await self.input.append(data, arrived)

    async def settle(self) -> None:
        """As `AudioIn.settle`."""
        await self.input.settle()

    def set_formats(self, input: Format, output: Format) -> None:
        """What follows is in these formats."""
        self.input.set_format(input)
        if output != self._output:
            self._output = output
            self._convert = Resampler(self.out_rate, format_rate(output))

    def blocks(self) -> AsyncIterator[Block]:
        return self.input.blocks()

    def send(self, pcm: Pcm) -> None:
        if self._played() >= self._sent:
            self._base, self._since = self._sent, self._clock()
        self._sent += pcm.size
        self._on_audio(self._encode(self._convert(pcm)), samples_to_ms(pcm.size, self.out_rate))

    def clear(self) -> int:
        """Clients flush their playback themselves on `speech_started`; what they had not played was never heard."""
        played = self._played()
        lost, self._sent, self._base = self._sent - played, played, played
        return lost

    def played(self) -> tuple[int, bool]:
        """What a client has heard that plays at once all that it gets: min(sent, time since the first delta).

        Audio that was cleared does not count, neither as sent nor as played. A client's truncate knows better.
        """
        return self._played(), False

    async def hang_up(self) -> None:
        """Let the client play what it has (`lead_ms` at most), then end the call."""
        if not self.input.ended:
            await asyncio.sleep((self._sent - self._played()) / self.out_rate)
        self.input.end()

    def _played(self) -> int:
        return min(self._sent, self._base + int((self._clock() - self._since) * self.out_rate))

    def _encode(self, pcm: Pcm) -> bytes:
        if isinstance(self._output, PcmFormat):
            return pcm.astype("<i2", copy=False).tobytes()
        return g711.encode(_law(self._output), pcm)
